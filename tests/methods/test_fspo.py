from math import exp

import pytest

from grupo.methods.fspo import RootLengthBounds, fspo
from grupo.testing.batches import make_batch, perturb_logp

BATCH = make_batch(group=[0, 0], length=[4, 1], advantage=[1.0, -1.0])


def test_clip_band_grows_with_square_root_of_length():
    low, high = RootLengthBounds(0.1)(BATCH)
    assert low.flatten().tolist() == pytest.approx([exp(-0.2), exp(-0.1)])
    assert high.flatten().tolist() == pytest.approx([exp(0.2), exp(0.1)])


def test_sequence_ratio_is_clipped_to_band():
    pi = perturb_logp(BATCH, [[0.05] * 4, [-0.3, 0.0, 0.0, 0.0]])
    method = fspo(clip_width=0.15)  # bands e^-+0.3 and e^-+0.15; products e^0.2 and e^-0.3
    loss = (method.aggregation(BATCH) * method.loss(pi, BATCH)).sum()
    loss.backward()
    assert loss.item() == pytest.approx((-exp(0.2) + exp(-0.15)) / 2)
    assert pi.logp.grad is not None
    assert pi.logp.grad[BATCH.mask].tolist() == pytest.approx([-exp(0.2) / 2] * 4 + [0])


def test_default_clip_width():
    assert fspo().loss.bounds == RootLengthBounds(0.03)
