"""Overthinking of agents: what the judge reads, the choice of the least, its measurement."""

import asyncio
import re
from dataclasses import replace

import pytest

from grupo.core.types import Group, Response, Rollout, Task
from grupo.core.usage import count_external_usage
from grupo.evidence.least_score import least_score
from grupo.rewards import Overthinking
from grupo.rewards.choices import Least
from grupo.rewards.judges.overthinking import transcript
from grupo.util.errors import ConfigError
from tests.helpers.judged import ScriptedModel


def agent(*texts, **fields):
    """A rollout whose observations are "o1", "o2", …"""
    turns = ((f"o{i}", Response((1,), (0.0,), text=text)) for i, text in enumerate(texts, 1))
    return Rollout(tuple(turns), **fields)


def by_text(scores):
    """A model that replies with the score of the first of the texts that a rollout has."""
    return ScriptedModel(lambda prompt: next(r for text, r in scores.items() if text in prompt))


def scored(reward, *rollouts):
    return asyncio.run(reward(Task("t", "o1"), rollouts))


def test_the_judge_reads_observations_and_responses():
    rollout = agent("look", "take").append_turn("", Response((1,), (0.0,), text=" it"))
    expected = "Environment: o1\nAgent: look\nEnvironment: o2\nAgent: take\nAgent:  it"
    assert transcript(rollout) == expected
    model = ScriptedModel(lambda _: "Score: 4")
    assert scored(Overthinking(model), rollout) == [0.4]
    assert expected in model.conversations[0][0]["content"]


def test_of_scores_7_2_and_5_the_second_candidate_is_chosen():
    candidates = [agent("plan a"), agent("go b"), agent("plan c")]
    replies = {"plan a": "Score: 7", "go b": "Score: 2", "plan c": "Score: 5"}
    choice = Least(Overthinking(by_text(replies)))
    assert asyncio.run(choice(None, Rollout(), candidates)) == 1


def test_a_judge_that_counts_thoughts_per_action_gives_monotone_scores():
    def count(prompt):
        return f"Score: {min(10, prompt.count('thought;') / prompt.count('act;')):g}"

    rollouts = [agent(*["thought;" * n + "act;"] * 2) for n in (0, 1, 4, 9)]
    assert scored(Overthinking(ScriptedModel(count)), *rollouts) == [0.0, 0.1, 0.4, 0.9]


def test_a_reply_without_a_score_is_an_error_and_never_chosen():
    replies = {"a": "It is fine.", "b": "Score: 9"}
    candidates = [agent("a!"), agent("b!")]
    model = ScriptedModel(lambda prompt: replies["b" if "b!" in prompt else "a"])
    error, number = scored(Overthinking(model), *candidates)
    assert isinstance(error, Exception)
    assert number == 0.9
    with count_external_usage() as usage:
        assert asyncio.run(Least(Overthinking(model))(None, Rollout(), candidates)) == 1
        failing = Least(Overthinking(ScriptedModel(lambda _: "no")))
        assert asyncio.run(failing(None, Rollout(), candidates)) == 0
    assert usage["choices/unscored"] == 1


def group(values, solved):
    rollouts = (
        agent("x", reward_terms={"over": value, "right": float(right)})
        for value, right in zip(values, solved, strict=True)
    )
    return Group(Task("t", "o1"), tuple(rollouts))


def is_right(rollout):
    return rollout.reward_terms["right"] > 0


def test_the_least_score_is_measured_against_the_mean_of_all():
    result = least_score([group([0.7, 0.2, 0.5], [0, 1, 0])], "over", is_right)
    assert (result.selected, result.mean) == (1.0, pytest.approx(1 / 3))
    # the mean is 7 / 15: sum of (x - mean) y / sum of (x - mean)^2
    slope = (0.2 - 7 / 15) / ((0.7 - 7 / 15) ** 2 + (0.2 - 7 / 15) ** 2 + (0.5 - 7 / 15) ** 2)
    assert result.slope == pytest.approx(slope)


def test_unscored_rollouts_are_counted_and_left_out():
    whole = group([0.7, 0.2], [1, 0])
    failed = replace(whole.rollouts[1], error="no reply")
    result = least_score([whole.with_rollouts([whole.rollouts[0], failed])], "over", is_right)
    assert (result.selected, result.mean, result.groups, result.unscored) == (1.0, 1.0, 1, 1)
    assert result.slope != result.slope
    with pytest.raises(ConfigError, match="none of 2 rollouts has a score 'ovr'"):
        least_score([whole], "ovr", is_right)


def test_bad_input_is_named():
    with pytest.raises(ConfigError, match=re.escape("placeholder {transcript}")):
        Overthinking(ScriptedModel(lambda _: ""), "{completion}")
    with pytest.raises(ConfigError, match=r"Overthinking\.model"):
        Overthinking("smollm2")
