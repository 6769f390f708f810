from math import sqrt

import pytest

from grupo.methods.listener import Convincing, listener
from grupo.testing.batches import batch_of

PARTS = {
    "format": [1.0, 1.0, 1.0, 0.0],
    "correct": [1.0, 1.0, 0.0, 1.0],
    "listener": [0.9, 0.3, 0.9, 0.9],
}


def test_reasons_that_convince_are_paid_beside_the_answer():
    batch = batch_of(group=[0] * 4, parts=PARTS)
    earned = Convincing()(batch.reward, batch).tolist()
    assert earned == pytest.approx([1 + 0.5 + 0.45, 1 + 0.5 + 0.15, 1 + 0.45, 0.0])


def test_a_doubting_listener_may_pay_nothing():
    batch = batch_of(group=[0] * 4, parts=PARTS)
    earned = Convincing(least=0.5)(batch.reward, batch).tolist()
    assert earned == pytest.approx([1.95, 1.5, 1.45, 0.0])


def test_two_right_answers_are_told_apart():
    parts = {name: x[:2] for name, x in PARTS.items()}
    batch = batch_of(group=[0, 0], parts=parts)
    s = sqrt(2 * 0.15**2) + 1e-6  # 1.95 and 1.65 about 1.8
    assert listener().credit(batch.reward, batch).tolist() == pytest.approx([0.15 / s, -0.15 / s])


def test_it_reads_three_parts():
    assert listener().credit.steps[0] == Convincing(0.5, 0.5, 0.0)
    assert listener().credit.steps[0].reads_parts == ("format", "correct", "listener")
