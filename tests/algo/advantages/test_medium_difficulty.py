"""Weights of groups by difficulty and by the diversity of their answers: numbers by hand."""

import pytest
import torch

from grupo.algo.advantages.medium_difficulty import MediumDifficulty
from grupo.testing.batches import make_batch


def weight(rewards, answers=()):
    terms = {"right": rewards, **({"answer": answers} if answers else {})}
    batch = make_batch(group=[0] * len(rewards), reward_terms=terms)
    component = MediumDifficulty("right", "answer" if answers else "")
    return component(torch.ones(len(rewards)), batch)[0].item()


@pytest.mark.parametrize(
    ("rewards", "expected"),
    [([1, 0], 1.0), ([1, 1], 0.0), ([0, 0], 0.0), ([1, 0, 0, 0], 0.75)],
)
def test_right_or_wrong_answers_weigh_4_p_1_minus_p(rewards, expected):
    assert weight([float(x) for x in rewards]) == pytest.approx(expected)


@pytest.mark.parametrize(
    ("answers", "expected"), [(range(8), 1.0), ([0, 0, 0, 1, 1, 1, 2, 2], 2 / 7), ([5] * 8, 0.0)]
)
def test_different_permutations_weigh_more(answers, expected):
    # r = 0.5: 4 r (1 - r) = 1; 8, 3 and 1 different answers of 8: 7/7, 2/7 and 0/7
    assert weight([0.5] * 8, [float(a) for a in answers]) == pytest.approx(expected)


def test_a_group_of_one_weighs_nothing():
    assert weight([0.5], [1.0]) == 0.0
