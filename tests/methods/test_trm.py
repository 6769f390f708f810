from math import exp

import pytest
import torch

from grupo.methods.trm import trm
from grupo.testing.batches import make_batch, perturb_logp

# d = log old - log sampler; k3 = e^d - d - 1 is 0.000_005 at 0.003, 0.0019 at -0.0622, 0.0516 at
# -0.34 and 0.0052 at 0.1.
D = [[0.003, 0.003, 0.003], [-0.0622, 0.003, 0.003], [-0.34, 0.0, 0.0], [0.1, 0.1, 0.1]]
SAMPLER = [[-1.0 - d for d in row] for row in D]
BATCH = make_batch([0] * 4, length=[3] * 4, advantage=[1.0] * 4, signals={"logp@sampler": SAMPLER})


def kept_sequences(method):
    return method.loss(perturb_logp(BATCH, [[0.0] * 3] * 4), BATCH)[:, 0].ne(0).tolist()


def test_maximum_and_mean_criteria_mask_whole_sequences():
    assert exp(-0.34) + 0.34 - 1 > 0.05  # worst of the third
    assert (
        0.002 < exp(0.1) - 0.1 - 1 < 0.05
    )  # the fourth fails by its mean; its worst token is within bounds
    assert kept_sequences(trm()) == [True, True, False, False]
    assert kept_sequences(trm(max_mean_kl=1.0)) == [True, True, False, True]
    assert kept_sequences(trm(max_token_kl=1.0, max_mean_kl=1.0)) == [True] * 4


def test_kept_sequences_use_unchanged_surrogate():
    method, pi = trm(), perturb_logp(BATCH, [[0.1] * 3] * 4)
    loss = (method.aggregation(BATCH) * method.loss(pi, BATCH)).sum()
    assert loss.item() == pytest.approx(-2 * exp(0.1) / 4)
    (gradient,) = torch.autograd.grad(loss, pi.logp)
    assert gradient[:2].flatten().tolist() == pytest.approx([-exp(0.1) / 12] * 6)
    assert gradient[2:].eq(0).all()
