"""Limits of the work on one answer: a strategy that loops loses its answer, and nothing else."""

import asyncio
from dataclasses import replace

import pytest

from grupo.core import limits
from grupo.core.answer_work import AnswerLimitError, count_answer_work, limit_answer
from grupo.core.interfaces import run_rollout, score_group, single_response
from grupo.core.types import RewardResult, Rollout, Task
from grupo.inference.base import Reply, Request
from grupo.inference.counting_batcher import CountingBatcher
from grupo.rollouts.evaluate import evaluate
from grupo.rollouts.turns import BestOf, Revised, Vote
from grupo.util.errors import ConfigError
from grupo.util.event_loop import run_coroutine
from tests.helpers.scripted_actor import END, TASK, Once, script


async def endless(actor, rollout, observation):
    """A strategy that never returns."""
    while True:
        await actor(rollout, observation)
        count_answer_work(calls=1, tokens=5)


async def endless_on_some(actor, rollout, observation):
    """As above, for the tasks whose prompt says so."""
    strategy = endless if observation == "loop" else single_response
    return await strategy(actor, rollout, observation)


def test_a_strategy_that_loops_loses_its_answer_with_the_name_of_the_limit():
    actor = script(lambda context, key: END)
    rollout = asyncio.run(run_rollout(TASK, Once(), actor, turn_strategy=endless))
    assert len(actor.log) == limits.ANSWER_CALLS.maximum + 1
    assert rollout.turns == ()
    assert rollout.error == (
        "turn_strategy: test_answer_work.endless makes 10,001 calls for one answer."
        " Allowed: at most 10,000 calls."
    )


def test_tokens_are_limited_too():
    with limit_answer():
        count_answer_work(1, limits.ANSWER_TOKENS.maximum)
        with pytest.raises(AnswerLimitError, match="100,000,001 tokens for one answer"):
            count_answer_work(1, 1)


def test_answers_are_limited_one_by_one():
    half = limits.ANSWER_CALLS.maximum // 2 + 1
    for _ in range(3):
        with limit_answer():
            count_answer_work(half, 0)
    count_answer_work(10**9, 0)  # outside of an answer nothing is limited


def test_the_other_answers_are_scored_and_the_lost_one_is_counted():
    actor = script(lambda context, key: END)

    class Policy:
        def actor(self, key):
            return actor

    counted = {"": 0}
    type(actor).generated_tokens = type(actor).read_tokens = property(lambda self: counted)
    try:
        tasks = [Task(prompt, prompt) for prompt in ("easy", "loop", "plain")]
        result = evaluate(Policy(), Once(), tasks, num_attempts=1, turn_strategy=endless_on_some)
    finally:
        del type(actor).generated_tokens, type(actor).read_tokens
    assert result.num_failed == 2  # greedy and sampled
    assert result.sampled.value == pytest.approx(2 / 3)
    assert "endless_on_some makes 10,001 calls" in result.first_error


def test_only_rollouts_without_an_error_are_scored():
    class Env(Once):
        async def score(self, task, rollouts):
            return [RewardResult(reward=float(len(rollouts)))] * len(rollouts)

    lost = replace(Rollout(), error="lost")
    group = asyncio.run(score_group(TASK, Env(), [Rollout(), lost, Rollout()]))
    assert group.rewards[::2] == (2.0, 2.0)
    assert group.rollouts[1] == lost
    assert asyncio.run(score_group(TASK, Env(), [lost])).rollouts == (lost,)


def test_every_reply_of_an_engine_counts(monkeypatch):
    monkeypatch.setattr("grupo.core.answer_work.ANSWER_TOKENS", replace(limits.TOKENS, maximum=20))
    batcher = CountingBatcher(lambda requests: enumerate([Reply((7, 8), num_cached=1)]))

    async def answer():
        with limit_answer():
            for _ in range(10):
                await batcher(Request((1, 2, 3), 0))

    with pytest.raises(
        AnswerLimitError, match=r"reads 24 tokens for one answer\. Allowed: at most"
    ):
        run_coroutine(answer())
    assert batcher.generated_tokens == {"": 12}


@pytest.mark.parametrize("make", [Vote, BestOf, Revised])
@pytest.mark.parametrize("n", [0, 10_001, 10**9])
def test_numbers_of_attempts_beyond_the_limit_are_refused_at_once(make, n):
    with pytest.raises(ConfigError, match=rf": {n}\. Allowed: 1 to 10000"):
        make(n)
