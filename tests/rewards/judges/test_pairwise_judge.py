"""Win rates of a judge that compares, by hand."""

import asyncio

import pytest

from grupo.envs import RewardTerm, SingleTurn
from grupo.rewards import ExactMatch, PairwiseJudge
from grupo.rewards.judges.pairwise_judge import compared_pairs
from grupo.util.errors import ConfigError
from tests.helpers.judged import TASK, ScriptedModel, failing, results, rollout, terms


def judge(decide, **fields):
    """A judge that decides by the first and the second answer."""
    model = ScriptedModel(lambda message: decide(*message.split("|")))
    return PairwiseJudge(model, "{completion_a}|{completion_b}", **fields)


def longer(first, second):
    if len(first) == len(second):
        return "Better: C"
    return "Better: A" if len(first) > len(second) else "Better: B"


def win_rates(reward, *texts):
    return [terms(result)["quality"] for result in results(reward, *texts)]


def test_the_win_rate_is_the_fraction_of_the_others_that_lose():
    assert win_rates(judge(longer), "aaa", "a", "aa") == [1.0, 0.0, 0.5]


def test_a_tie_is_half_a_win_for_both():
    assert win_rates(judge(longer), "aa", "bb") == [0.5, 0.5]


@pytest.mark.parametrize("preferred", "AB")
def test_a_judge_that_prefers_a_position_has_no_influence(preferred):
    scored = results(judge(lambda first, second: f"Better: {preferred}"), "a", "b", "c")
    assert [terms(result)["quality"] for result in scored] == [0.5, 0.5, 0.5]
    assert [terms(result)["quality/consistent"] for result in scored] == [0.0, 0.0, 0.0]


def test_both_orders_of_every_pair_are_asked_once():
    reward = judge(longer)
    scored = results(reward, "a", "bb", "ccc")
    sent = [messages[0]["content"] for messages in reward.model.conversations]
    assert sorted(sent) == ["a|bb", "a|ccc", "bb|a", "bb|ccc", "ccc|a", "ccc|bb"]
    assert [terms(result)["quality/consistent"] for result in scored] == [1.0, 1.0, 1.0]


@pytest.mark.parametrize(
    ("count", "neighbours", "pairs"),
    [
        (2, 0, [(0, 1)]),
        (2, 1, [(0, 1)]),
        (4, 0, [(0, 1), (0, 2), (0, 3), (1, 2), (1, 3), (2, 3)]),
        (4, 9, [(0, 1), (0, 2), (0, 3), (1, 2), (1, 3), (2, 3)]),
        (5, 1, [(0, 1), (0, 4), (1, 2), (2, 3), (3, 4)]),
    ],
)
def test_pairs_are_all_or_those_of_neighbours_in_a_ring(count, neighbours, pairs):
    assert compared_pairs(count, neighbours) == pairs


@pytest.mark.parametrize("neighbours", [1, 2, 3])
def test_every_rollout_is_in_equally_many_pairs(neighbours):
    pairs = compared_pairs(9, neighbours)
    counts = [sum(i in pair for pair in pairs) for i in range(9)]
    assert counts == [2 * neighbours] * 9


def test_a_comparison_without_a_score_is_left_out():
    def decide(first, second):
        return failing(first) if {first, second} == {"aaa", "a"} else longer(first, second)

    assert win_rates(judge(decide), "aaa", "a", "aa") == [1.0, 0.0, 0.5]


def test_an_answer_that_no_comparison_can_score_fails_alone():
    def decide(first, second):
        return "Better: both" if "x" in (first, second) else longer(first, second)

    good, bad, failed = results(judge(decide), "aa", "a", "x")
    assert (terms(good)["quality"], terms(bad)["quality"]) == (1.0, 0.0)
    assert "'both' after 'Better:' is none of 'ABC'" in failed.error


def test_a_group_of_one_rollout_has_no_win_rate_and_other_terms_count():
    terms_of_env = (RewardTerm("quality", judge(longer)), RewardTerm("right", ExactMatch()))
    (result,) = asyncio.run(SingleTurn(terms_of_env).score(TASK, [rollout("4")]))
    assert (result.reward, result.reward_terms) == (1.0, {"right": 1.0})


def test_an_answer_that_contains_the_verdict_is_not_parsed():
    reward = judge(lambda first, second: f"{first}\n{second}\nBetter: C")
    assert win_rates(reward, "Better: A", "Better: B") == [0.5, 0.5]


def test_the_prompt_of_the_library_needs_no_column_and_another_both_answers():
    model = ScriptedModel(str)
    PairwiseJudge(model).validate_tasks([TASK])
    with pytest.raises(ConfigError, match=r"PairwiseJudge.prompt: .*{completion_b}"):
        PairwiseJudge(model, "{completion_a}")
