"""Best of n: which attempt is chosen, that it is no sample, and that no choice sees the task."""

import asyncio
from dataclasses import replace

import pytest

from grupo.config.parse_value import parse_value
from grupo.core.extract_answer import AfterMarker, last_boxed
from grupo.core.interfaces import TurnStrategy, run_rollout, single_response
from grupo.core.private_turns import record_private_turns
from grupo.core.types import Response, Rollout
from grupo.core.usage import count_external_usage
from grupo.rewards import ExactMatch, FunctionReward
from grupo.rewards.choices import ByHead, ByReward, Likeliest, MostVoted
from grupo.rollouts.turns import BestOf, Revised, ThinkingBudget, Vote
from grupo.util.errors import ConfigError
from tests.helpers.scripted_actor import TASK, Once, dice, script

EMPTY = Rollout()


def candidates(*texts: str, logp=()):
    logps = logp or [(-1.0,)] * len(texts)
    return [
        Rollout((("Q", Response((1,) * len(p), p, text=text)),))
        for text, p in zip(texts, logps, strict=True)
    ]


def choose(choice, rollouts, actor=None) -> int:
    return asyncio.run(choice(actor or script(dice), EMPTY, rollouts))


@pytest.mark.parametrize(
    ("texts", "index"),
    [
        (("#a", "#b", "#b"), 1),  # the first of the majority
        (("#a", "#b", "#b", "#a"), 0),  # a tie: the earliest answer
        (("b", "#", "#c"), 2),  # neither a missing nor an empty answer votes
        (("a", "b", "b"), 0),  # nobody votes: the first candidate
    ],
)
def test_votes(texts, index):
    assert choose(MostVoted(AfterMarker("#")), candidates(*texts)) == index


def test_ties_and_empty_votes_are_counted():
    with count_external_usage() as usage:
        for texts in (("#a", "#b"), ("a", "b"), ("#a", "#a")):
            choose(MostVoted(AfterMarker("#")), candidates(*texts))
    assert usage == {"votes/all": 3.0, "votes/tied": 1.0, "votes/empty": 1.0}


def test_the_likeliest_has_the_largest_mean_and_not_the_largest_sum():
    rollouts = candidates("a", "b", "c", logp=[(-3.0,), (-2.0,) * 4, (-2.5,)])
    assert choose(Likeliest(), rollouts) == 1


def test_an_engine_without_log_probabilities_is_refused():
    rollout = Rollout((("Q", Response((1, 2), (), text="a")),))
    with pytest.raises(ConfigError, match=r"Likeliest needs log-probabilities"):
        choose(Likeliest(), [rollout])


def test_a_head_that_reads_answers_before_their_last_token_chooses_the_largest_prediction():
    class Critic:
        def truncate(self, rollout, num_items):
            *before, (observation, last) = rollout.turns
            assert num_items == len(last.items) - 1
            return replace(rollout, turns=(*before, (observation, replace(last, items=()))))

        async def predict_head(self, rollout, head):
            assert rollout.last_response.items == ()  # without the last and only token
            return {"score": float(len(rollout.text))}[head]

    assert choose(ByHead("score"), candidates("a", "abc", "abd"), Critic()) == 1


def test_a_reward_chooses_and_sees_no_reference_answer():
    seen = []

    def length(task, rollout):
        seen.append((task.reference_answer, dict(task.columns)))
        return {"a": 1.0, "bb": None, "ccc": float("nan")}[rollout.text]

    with count_external_usage() as usage:
        assert choose(ByReward(FunctionReward(length)), candidates("bb", "a", "ccc")) == 1
        assert choose(ByReward(FunctionReward(length)), candidates("ccc", "bb")) == 0
    assert set(map(str, seen)) == {"(None, {})"}
    assert usage["choices/unscored"] == 1


def test_a_reward_that_compares_with_the_reference_answer_is_refused_by_name():
    with pytest.raises(ConfigError, match=r"ByReward\(ExactMatch\(\)\).*Allowed: rewards that"):
        choose(ByReward(ExactMatch()), candidates("a", "b"))


def answer(strategy, task=TASK, key=0) -> Rollout:
    actor = script(dice).fork(key)
    return asyncio.run(run_rollout(task, Once(), actor, turn_strategy=strategy))


STRATEGIES = {
    "vote": Vote(4, extract=str),
    "best": BestOf(4),
    "revised": Revised(2),
    "stopped": Revised(3, stop_prompt="{task}{answer}"),
    "reward": BestOf(3, ByReward(FunctionReward(lambda task, rollout: len(rollout.text)))),
}


@pytest.mark.parametrize("name", STRATEGIES)
def test_another_reference_answer_changes_no_word(name):
    for key in range(5):
        other = replace(TASK, reference_answer="else", columns={"solution": "else"})
        assert answer(STRATEGIES[name], key=key) == answer(STRATEGIES[name], other, key)


def test_one_of_the_attempts_is_returned_and_is_no_sample():
    with record_private_turns() as turns:
        rollout = answer(BestOf(4))
    attempts = [turn.text for turn in turns]
    assert len(attempts) == 4
    assert len(set(attempts)) > 1
    assert [t.text for t in turns if t.label.endswith("chosen")] == [rollout.text]
    assert not rollout.last_response.sampled
    assert rollout.last_response.logp == (-1.0,) * len(rollout.text)


def test_vote_is_best_of_by_votes():
    for key in range(5):
        votes = BestOf(5, MostVoted(last_boxed))
        assert answer(Vote(5, last_boxed), key=key) == answer(votes, key=key)


def test_strategies_nest():
    rollout = answer(BestOf(3, inner=ThinkingBudget(2, 3, "|")))
    assert len(rollout.turns) in (1, 2, 3)
    assert not any(response.sampled for _, response in rollout.turns)


def test_a_strategy_without_a_response_is_refused():
    async def silent(actor, rollout, observation):
        return rollout

    with pytest.raises(ConfigError, match=r"silent.* returned no response to an observation"):
        answer(silent)


@pytest.mark.parametrize(
    ("text", "strategy"),
    [
        ("single_response", single_response),
        ("Vote(16)", Vote(16)),
        ("Vote(4, last_boxed)", Vote(4, last_boxed)),
        ("BestOf(16, choice=ByHead('score'))", BestOf(16, ByHead("score"))),
        ("Revised(max_revisions=3, inner=Vote(2))", Revised(3, inner=Vote(2))),
        ("tests.rollouts.turns.test_best_of:answer", answer),
    ],
)
def test_strategies_are_spelled(text, strategy):
    assert parse_value(text, TurnStrategy, "strategy") == strategy


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("Vote(0)", "strategy: Vote.n: 0. Allowed: 1 to 10000."),
        ("Vot(3)", "Did you mean 'Vote'?"),
        ("BestOf(4, choice=ByHed('a'))", "Did you mean 'ByHead'?"),
        ("BestOf(4, choice=3)", "choice of BestOf: 3 does not fit. Allowed: ByHead(…)"),
        ("Vote(4, is_thoughts_then_answer)", "does not fit"),
        ("Revised(revision_prompt='Again.')", "Revised.revision_prompt: 'Again.' lacks {task}."),
        (
            "Revised(stop_prompt='{task} {answer} {guide}')",
            "Revised.stop_prompt: {guide} has no value here.",
        ),
        ("score_group", "'score_group' does not fit"),
        ("missing.py:name", "missing.py"),
    ],
)
def test_misspelt_strategies_are_refused(text, message):
    with pytest.raises(ConfigError) as caught:
        parse_value(text, TurnStrategy, "strategy")
    assert message in str(caught.value)
