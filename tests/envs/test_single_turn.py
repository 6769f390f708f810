"""What a world of one question and one answer says of rollouts."""

import asyncio
from fractions import Fraction

import numpy as np
import pytest
import torch

from grupo.core.errors import ConfigError
from grupo.core.types import Rollout
from grupo.envs import FallbackReward, RewardTerm, SingleTurn
from grupo.rewards import ExactMatch, LengthPenalty
from tests.helpers.toy_rewards import RIGHT, TASK, every, judged, one


def test_the_prompt_comes_first_and_then_it_is_over():
    world = SingleTurn((RewardTerm("acc", ExactMatch()),))
    assert asyncio.run(world.reply(TASK, Rollout())) == "2 + 2 ="
    assert asyncio.run(world.reply(TASK, RIGHT)) is None


def test_the_reward_is_the_weighted_sum_of_raw_parts():
    parts = (
        RewardTerm("acc", ExactMatch(), 2.0),
        RewardTerm("short", LengthPenalty(1, penalty_coef=0.5), 0.1),
    )
    right, wrong = judged(*parts)
    assert (right.reward, dict(right.reward_terms)) == (
        2.0 * 1 + 0.1 * 0,
        {"acc": 1.0, "short": 0.0},
    )
    assert wrong.reward == pytest.approx(2.0 * 0 + 0.1 * -1.0)
    assert (dict(wrong.reward_terms), wrong.error) == ({"acc": 0.0, "short": -1.0}, "")


def test_further_numbers_of_a_reward_are_parts_that_count_nothing():
    def compute_score(solution_str, ground_truth):
        return {"score": 0.5, "exact": True, "n": np.int64(3), "note": "text", "nan": float("nan")}

    verdict, _ = judged(RewardTerm("verl", compute_score, 2.0))
    assert (verdict.reward, verdict.error) == (1.0, "")
    assert verdict.reward_terms == {"verl": 0.5, "verl/exact": 1.0, "verl/n": 3.0}


@pytest.mark.parametrize(
    "value",
    [True, 1, 1.0, np.float32(1), np.bool_(True), np.array([1.0]), torch.tensor(1), Fraction(1)],
)
def test_any_kind_of_number_becomes_a_float(value):
    _, verdict = one(lambda: value)
    assert (verdict.reward, type(verdict.reward), verdict.error) == (1.0, float, "")


@pytest.mark.parametrize("values", [np.array([1.0, 0.0]), torch.tensor([1.0, 0.0]), (1, False)])
def test_a_group_may_be_answered_by_arrays(values):
    assert [verdict.reward for verdict in every(lambda: values)] == [1.0, 0.0]


def test_parts_and_worlds_that_cannot_be_are_refused():
    with pytest.raises(ConfigError, match=r"named \['a', 'a'\]"):
        SingleTurn((RewardTerm("a", ExactMatch()), RewardTerm("a", ExactMatch())))
    with pytest.raises(ConfigError, match=r"at least one"):
        SingleTurn(())
    with pytest.raises(ConfigError, match=r"time_limit: 0"):
        SingleTurn((RewardTerm("a", ExactMatch()),), time_limit=0)
    for name in ("", "a/b", "failed"):
        with pytest.raises(ConfigError, match=r"name: "):
            RewardTerm(name, ExactMatch())
    with pytest.raises(ConfigError, match=r"weight: nan"):
        RewardTerm("a", ExactMatch(), float("nan"))
    with pytest.raises(ConfigError, match=r"value: inf"):
        FallbackReward(float("inf"))
    with pytest.raises(ConfigError, match=r"fits no form"):
        RewardTerm("a", lambda x: x)


def test_sequences_that_a_reward_gives_are_marks_of_the_actions():
    def steps(task, rollout):
        return {"score": 1.0, "steps": [0.5] * rollout.length, "notes": ["fine"]}

    right, wrong = judged(RewardTerm("acc", steps))
    assert (dict(right.step_values), dict(wrong.step_values)) == (
        {"steps": (0.5,)},
        {"steps": (0.5,) * 3},
    )
    assert right.reward_terms == {"acc": 1.0}


def test_marks_for_other_actions_than_there_are_fail_the_rollout():
    right, wrong = judged(RewardTerm("acc", lambda task, rollout: {"score": 1.0, "steps": [0.5]}))
    assert not right.error
    assert "gave 1 numbers by the name 'steps' for 3 actions" in wrong.error
