"""SRPO: rewards for the effect and the length of a reflection."""

from math import exp

import pytest

from grupo.methods.srpo_reflection import ReflectionReward, srpo_reflection
from grupo.testing.batches import make_batch

PAPER, RELEASE = ReflectionReward(0.5, 0.25, 0.1), ReflectionReward(1.0, 0.0, 0.1)


def reward(piece, first, correct, format=1.0, reflection=1.0, first_length=4.0, length=9):
    parts = {
        "first": [first],
        "correct": [correct],
        "format": [format],
        "reflection": [reflection],
        "first_length": [first_length],
    }
    batch = make_batch(group=[0], length=[length], reward_terms=parts)
    return piece(batch.reward, batch).item()


BRIEF = 0.1 * exp(-0.25)  # 9 tokens, 8 wanted, 10 too many: u = 1/2


def test_correct_twice_has_highest_reward_in_paper():
    assert reward(PAPER, 1.0, 1.0) == pytest.approx(0.5 + 0.5 + 0.25 + 0.25 + BRIEF)
    assert reward(PAPER, 0.0, 1.0) == pytest.approx(0.5 + 0.5 + 0.25 + BRIEF)
    assert reward(PAPER, 1.0, 0.0) == pytest.approx(0.5 + 0.5 - 0.25 + 0.25 + BRIEF)
    assert reward(PAPER, 0.0, 0.0) == pytest.approx(0.5 + 0.25 + BRIEF)


def test_correction_has_highest_reward_in_release():
    assert reward(RELEASE, 0.0, 1.0) == pytest.approx(1.0 + 0.5 + BRIEF)
    assert reward(RELEASE, 0.0, 1.0) == pytest.approx(1.5779, abs=1e-4)
    assert reward(RELEASE, 1.0, 1.0) == pytest.approx(0.75 + 0.5 + BRIEF)
    assert reward(RELEASE, 1.0, 0.0) == pytest.approx(0.25 + 0.5 + BRIEF)
    assert reward(RELEASE, 0.0, 0.0) == pytest.approx(0.5 + BRIEF)


def test_single_answer_has_no_reflection_reward():
    unreflected = {"format": 0.0, "reflection": 0.0, "first_length": 0.0}
    assert reward(PAPER, 1.0, 1.0, **unreflected) == 0.5
    assert reward(PAPER, 0.0, 0.0, **unreflected) == 0.0


def test_length_reward_peaks_at_twice_first_answer():
    assert reward(PAPER, 0.0, 0.0, reflection=0.0, length=8) == pytest.approx(0.5 + 0.1)
    short, long = (reward(PAPER, 0.0, 0.0, reflection=0.0, length=n) for n in (6, 10))
    assert short == long == pytest.approx(0.5 + 0.1 * exp(-1))


def test_advantage_uses_reflection_rewards():
    parts = {"first": [1.0, 0.0], "correct": [1.0, 0.0]}
    parts |= {name: [0.0, 0.0] for name in ("format", "reflection", "first_length")}
    batch = make_batch(group=[0, 0], reward_terms=parts)
    advantage = batch.with_advantage(srpo_reflection().advantage).advantage[:, 0].tolist()
    assert advantage == pytest.approx([0.5**0.5, -(0.5**0.5)], rel=1e-5)


def test_defaults_match_paper():
    assert srpo_reflection().advantage.estimators[0] == PAPER
    assert (
        srpo_reflection(corrected_reward=1.0, reflection_reward=0.0).advantage.estimators[0]
        == RELEASE
    )
