"""The environment of one prompt and one answer."""

import asyncio
from fractions import Fraction

import numpy as np
import pytest
import torch

from grupo.core.types import Rollout
from grupo.envs import FallbackReward, RewardTerm, SingleTurn
from grupo.rewards import ExactMatch, LengthPenalty
from grupo.util.errors import ConfigError
from tests.helpers.toy_rewards import CORRECT, TASK, score, score_group_by, score_wrong_by


def test_the_prompt_is_the_only_observation():
    env = SingleTurn((RewardTerm("acc", ExactMatch()),))
    assert asyncio.run(env.reply(TASK, Rollout())) == "2 + 2 ="
    assert asyncio.run(env.reply(TASK, CORRECT)) is None


def test_the_reward_is_the_weighted_sum_of_unweighted_terms():
    terms = (
        RewardTerm("acc", ExactMatch(), 2.0),
        RewardTerm("short", LengthPenalty(1, penalty_coef=0.5), 0.1),
    )
    correct, wrong = score(*terms)
    assert correct.reward == 2.0 * 1 + 0.1 * 0
    assert dict(correct.reward_terms) == {"acc": 1.0, "short": 0.0}
    assert wrong.reward == pytest.approx(2.0 * 0 + 0.1 * -1.0)
    assert (dict(wrong.reward_terms), wrong.error) == ({"acc": 0.0, "short": -1.0}, "")


def test_further_numbers_of_a_reward_are_terms_of_weight_zero():
    def compute_score(solution_str, ground_truth):
        return {"score": 0.5, "exact": True, "n": np.int64(3), "note": "text", "nan": float("nan")}

    result, _ = score(RewardTerm("verl", compute_score, 2.0))
    assert (result.reward, result.error) == (1.0, "")
    assert result.reward_terms == {"verl": 0.5, "verl/exact": 1.0, "verl/n": 3.0}


@pytest.mark.parametrize(
    "value",
    [True, 1, 1.0, np.float32(1), np.bool_(True), np.array([1.0]), torch.tensor(1), Fraction(1)],
)
def test_any_kind_of_number_becomes_a_float(value):
    _, result = score_wrong_by(lambda: value)
    assert (result.reward, type(result.reward), result.error) == (1.0, float, "")


@pytest.mark.parametrize("values", [np.array([1.0, 0.0]), torch.tensor([1.0, 0.0]), (1, False)])
def test_a_group_reward_may_return_an_array(values):
    assert [result.reward for result in score_group_by(lambda: values)] == [1.0, 0.0]


def test_invalid_terms_and_environments_are_config_errors():
    with pytest.raises(ConfigError, match=r"named \['a', 'a'\]"):
        SingleTurn((RewardTerm("a", ExactMatch()), RewardTerm("a", ExactMatch())))
    with pytest.raises(ConfigError, match=r"at least one"):
        SingleTurn(())
    with pytest.raises(ConfigError, match=r"time_limit: 0"):
        SingleTurn((RewardTerm("a", ExactMatch()),), time_limit=0)
    for name in ("", "a/b", "failed", "answer_error"):
        with pytest.raises(ConfigError, match=r"name: "):
            RewardTerm(name, ExactMatch())
    with pytest.raises(ConfigError, match=r"weight: nan"):
        RewardTerm("a", ExactMatch(), float("nan"))
    with pytest.raises(ConfigError, match=r"value: inf"):
        FallbackReward(float("inf"))
    with pytest.raises(ConfigError, match=r"no signature of a reward function"):
        RewardTerm("a", lambda x: x)


def test_sequences_of_a_reward_are_step_values():
    def reward(task, rollout):
        return {"score": 1.0, "steps": [0.5] * rollout.length, "notes": ["fine"]}

    correct, wrong = score(RewardTerm("acc", reward))
    assert dict(correct.step_values) == {"steps": (0.5,)}
    assert dict(wrong.step_values) == {"steps": (0.5,) * 3}
    assert correct.reward_terms == {"acc": 1.0}


def test_step_values_of_another_length_fail_the_rollout():
    term = RewardTerm("acc", lambda task, rollout: {"score": 1.0, "steps": [0.5]})
    correct, wrong = score(term)
    assert not correct.error
    assert "returned 1 step values 'steps' for 3 items" in wrong.error
