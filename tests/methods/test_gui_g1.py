import pytest

from grupo.methods.gui_g1 import gui_g1
from grupo.sampling import Independent
from grupo.testing import batch_of
from grupo.weights import FixedLength


def test_advantages_are_centred_and_weighed_by_difficulty():
    parts = {
        "hit": [1.0, 0.0],
        "iou": [0.5, 0.0],
        "box": [0.8, 0.0],
        "difficulty": [2.0, 2.0],
    }
    batch = batch_of(group=[0, 0], parts=parts)
    r = 1 + 0.25 * 0.5 + 0.125 * 0.8
    advantage = gui_g1().credit(batch.reward, batch).tolist()
    assert advantage == pytest.approx(
        [2 * r / 2, -2 * r / 2]
    )  # no division by a standard deviation


def test_twice_the_length_is_twice_the_loss():
    batch = batch_of(group=[0, 0], length=[2, 4])
    weight = gui_g1().weigh(batch).sum(1)
    assert weight.tolist() == [2 / (2 * 64), 4 / (2 * 64)]


def test_the_defaults_are_the_released_runs():
    method = gui_g1()
    assert method.sample == Independent(8)
    assert method.weigh == FixedLength(64)
    assert method.credit.steps[0].weights == (("hit", 1.0), ("iou", 0.25), ("box", 0.125))
