from math import exp

import pytest

from grupo.algo.minibatches import Updates
from grupo.methods.gspo import gspo
from grupo.rollouts.samplers import GroupSampler
from grupo.testing.batches import make_batch, perturb_logp

BATCH = make_batch(group=[0, 0], length=[2, 1], advantage=[1.0, -1.0])


def loss_and_gradient(method, by):
    pi = perturb_logp(BATCH, by)
    loss = (method.aggregation(BATCH) * method.loss(pi, BATCH)).sum()
    loss.backward()
    assert pi.logp.grad is not None
    return loss.item(), pi.logp.grad[BATCH.mask].tolist()


def test_sequence_ratio_is_clipped_geometric_mean():
    # s = exp((0.001 - 0.0004) / 2) = exp(0.0003) < 1 + 4e-4: its second token alone is far below
    # 1 - 3e-4 and yet learned from; the other answer's s = exp(-0.0002) > 1 - 3e-4
    loss, gradient = loss_and_gradient(gspo(), [[0.001, -0.0004], [-0.0002, 0.0]])
    assert loss == pytest.approx((-exp(0.0003) + exp(-0.0002)) / 2)
    # d s / d logp = s / L: answers count 1/2 each
    assert gradient == pytest.approx([-exp(0.0003) / 4, -exp(0.0003) / 4, exp(-0.0002) / 2])


def test_clipped_sequence_has_no_gradient():
    loss, gradient = loss_and_gradient(
        gspo(), [[0.001, 0.001], [-0.001, 0.0]]
    )  # s = e^0.001 and e^-0.001
    assert loss == pytest.approx((-(1 + 4e-4) + (1 - 3e-4)) / 2)
    assert gradient == [0, 0, 0]


def test_defaults_match_paper():
    assert (gspo().loss.clip_low, gspo().loss.clip_high) == (3e-4, 4e-4)
    assert gspo().updates == Updates(minibatches=4)
    assert gspo(group_size=16).sampler == GroupSampler(16)
