"""Rewards that raise, hang or return no number: they cost a rollout, a group, or the run."""

import asyncio
import sys
import time

import numpy as np
import pytest
import torch

from grupo.core.interfaces import score_group
from grupo.core.types import Group, Rollout
from grupo.envs import FallbackReward, RewardError, RewardTerm, SingleTurn, raise_error, timeouts
from grupo.rewards import ExactMatch
from tests.helpers.fast_cases import fast_cases
from tests.helpers.toy_rewards import CORRECT, TASK, score, score_group_by, score_wrong_by


def raise_value_error():
    raise ValueError("boom")


class Unprintable(Exception):
    def __str__(self):
        raise RuntimeError("not even this")


def raise_unprintable():
    raise Unprintable


async def raise_key_error_async():
    raise KeyError("boom")


async def hang_async():
    await asyncio.Event().wait()


async def raise_cancelled():
    raise asyncio.CancelledError


@pytest.mark.parametrize(
    ("function", "error"),
    [
        (raise_value_error, "raised ValueError: boom"),
        (raise_unprintable, "Unprintable: <exception str() failed>"),
        (sys.exit, "raised SystemExit"),
        (lambda: float("nan"), "returned nan"),
        (lambda: float("-inf"), "returned -inf"),
        (lambda: 10**400, "too large"),
        (lambda: None, "returned None, not a number"),
        (lambda: "1.0", "returned a str, not a number"),
        (lambda: 1j, "returned a complex, not a number"),
        (lambda: [1.0], "returned a list, not a number"),
        (lambda: np.array([1.0, 2.0]), "size 1"),
        (lambda: torch.tensor([1.0, 2.0]), "2 elements"),
        (lambda: {"value": 1.0}, "without 'score': value"),
        (lambda: {"score": None}, "returned None"),
        (lambda: {"score": "good"}, "returned a str"),
        (raise_key_error_async, "raised KeyError: 'boom'"),
        (raise_cancelled, "CancelledError"),
    ],
)
def test_an_invalid_reward_of_one_rollout_fails_that_rollout_only(function, error):
    correct, wrong = score_wrong_by(function, time_limit=0.2)
    assert (correct.reward, correct.error) == (1.0, "")
    assert wrong.error.startswith("task key, rollout 1: reward 'acc' ")
    assert error in wrong.error
    assert np.isnan(wrong.reward)


@pytest.mark.parametrize(
    ("function", "error"),
    fast_cases(
        1,
        [
            (raise_value_error, "raised ValueError: boom"),
            (lambda: time.sleep(1.0), "did not return within 0.2 s"),
            (hang_async, "did not return within 0.2 s"),
            (lambda: [1.0], "returned 1 numbers, not one number for each of 2 rollouts"),
            (lambda: 1.0, "returned a float, not one number for each of 2"),
            (lambda: None, "returned a NoneType"),
            (lambda: "ab", "returned a str"),
            (lambda: {"score": 1.0}, "returned a dict"),
            (lambda: torch.tensor(1.0), "returned a Tensor"),
        ],
    ),
)
def test_an_invalid_group_reward_fails_every_rollout(function, error):
    results = score_group_by(function, time_limit=0.2)
    assert [r.error[:20] for r in results] == ["task key, rollout 0:", "task key, rollout 1:"]
    assert all(error in result.error for result in results)


def test_one_invalid_number_of_a_group_reward_fails_one_rollout():
    correct, wrong = score_group_by(lambda: [1.0, float("nan")])
    assert (correct.reward, correct.error) == (1.0, "")
    assert wrong.error == "task key, rollout 1: reward 'acc' returned nan"


def test_a_term_that_is_none_for_a_rollout_is_left_out_of_its_sum():
    partial = RewardTerm("some", lambda completions: [None, 1.0], 3.0)
    first, second = score(RewardTerm("acc", ExactMatch()), partial)
    assert (first.reward, dict(first.reward_terms), first.error) == (1.0, {"acc": 1.0}, "")
    assert (second.reward, dict(second.reward_terms)) == (0.0 + 3.0, {"acc": 0.0, "some": 1.0})


def test_a_rollout_without_any_applicable_term_fails():
    first, second = score(RewardTerm("some", lambda completions: [None, 1.0]))
    message = "task key, rollout 0: no reward applies: every reward term returned None"
    assert first.error == message
    assert (second.reward, second.error) == (1.0, "")


def test_a_failed_rollout_keeps_the_values_of_its_other_terms():
    failing = RewardTerm("bad", lambda task, rollout: raise_value_error())
    result, _ = score(RewardTerm("acc", ExactMatch()), failing)
    assert dict(result.reward_terms) == {"acc": 1.0}
    assert "reward 'bad' raised" in result.error


def test_a_fallback_reward_gives_its_value_and_counts_the_failure():
    correct, wrong = score_wrong_by(raise_value_error, on_failure=FallbackReward(-1.0))
    assert (correct.reward, dict(correct.reward_terms)) == (1.0, {"acc": 1.0})
    assert (wrong.reward, dict(wrong.reward_terms), wrong.error) == (-1.0, {"failed": 1.0}, "")


def test_raise_error_ends_the_run_with_the_error_of_the_rollout():
    message = r"task key, rollout 1: reward 'acc' raised ValueError: boom"
    with pytest.raises(RewardError, match=message):
        score_wrong_by(raise_value_error, on_failure=raise_error)


@pytest.mark.slow
def test_rewards_that_hang_do_not_delay_later_ones():
    """Twice as many hang as may run at once, then one returns."""
    rollouts = [Rollout(source=str(n)) for n in range(17)]

    def reward(task, rollout):
        return 1.0 if rollout.source == "16" else time.sleep(1.0)

    results = score(RewardTerm("acc", reward), rollouts=rollouts, time_limit=0.1)
    assert [r.error == "" for r in results] == [False] * 16 + [True]


def test_a_blocked_event_loop_does_not_time_out_a_reward_that_has_returned():
    async def blocking(task, rollout):
        time.sleep(0.5)  # blocks the loop until long after the other reward's limit
        return 0.0

    def quick(task, rollout):
        return time.sleep(0.1) or 1.0

    terms = RewardTerm("quick", quick), RewardTerm("blocking", blocking)
    (result,) = score(*terms, rollouts=[CORRECT], time_limit=0.3)
    assert result.reward_terms["quick"] == 1.0


def test_an_imported_per_rollout_reward_scores_each_rollout_apart(tmp_path):
    file = tmp_path / "mine.py"
    file.write_text("def score(task, rollout):\n    return 1 / (rollout.length - 1)\n")
    first, second = score(RewardTerm("acc", f"{file}:score"))
    assert "raised ZeroDivisionError" in first.error
    assert second.reward == 1 / 2


def test_a_group_contains_its_failed_rollouts():
    env = SingleTurn((RewardTerm("acc", lambda task, rollout: raise_value_error()),))
    group: Group = asyncio.run(score_group(TASK, env, [CORRECT]))
    assert "boom" in group.rollouts[0].error


@pytest.mark.parametrize("ticks", range(4))
def test_a_wait_cancelled_just_as_it_ends_is_cancelled(ticks):
    async def cancel_while_waiting():
        done = asyncio.Event()
        task = asyncio.ensure_future(timeouts._wait_for_event(done, 60.0))
        for _ in range(4):
            await asyncio.sleep(0)
        done.set()
        for _ in range(ticks):
            await asyncio.sleep(0)
        if task.cancel():
            with pytest.raises(asyncio.CancelledError):
                await task

    asyncio.run(cancel_while_waiting())
