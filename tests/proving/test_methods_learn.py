"""Every method trained for seconds: what its page claims of it, under another seed."""

import pytest
import torch

from grupo.catalogue import methods
from grupo.proving import tried
from grupo.proving.card import MARGIN

SEED = 3  # none of the table's


@pytest.mark.slow
@pytest.mark.parametrize("entry", methods(), ids=lambda entry: entry.key)
def test_it_learns_and_its_signal_turned_round_does_not(entry):
    torch.set_num_threads(1)
    one = tried(entry.method, seed=SEED)
    if "run" in entry.checked:
        other = tried(entry.method, seed=SEED, turned=True)
        assert one.gain > MARGIN
        assert other.gain < one.gain - MARGIN
    assert all(0 <= share <= 1 for share in one.truth)  # it went to the end, whatever it learned
