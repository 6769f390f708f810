"""A rollout of two rows with environment tokens inside, beside a rollout of one action."""

from dataclasses import replace

import pytest
import torch

from grupo.testing.batches import make_batch


@pytest.fixture
def two_row_batch():
    """Rollout 0: turns 0, 1 in row 0, turn 2 in row 2; rollout 1: row 1.

    Column 1 of row 0 is an environment token.
    """
    batch = make_batch(
        group=[0, 0, 0],
        length=[4, 2, 2],
        turn=[[0, 0, 1, 1], [0, 0, 0, 0], [2, 2, 0, 0]],
    )
    mask = batch.mask & (torch.arange(4) != 1)
    mask[2, 1] = True
    rollout = torch.tensor([0, 1, 0])
    return replace(
        batch, rollout=rollout, reward=batch.reward[:2], group=batch.group[:2], mask=mask
    )
