"""What goes wrong with judging, and what it costs: a rollout, a group, or the run."""

import asyncio
import sys
import time

import numpy as np
import pytest
import torch

from grupo.core.interfaces import score_group
from grupo.core.types import Action, Group, Rollout
from grupo.envs import FallbackReward, RewardError, RewardTerm, SingleTurn, raise_error, timeouts
from grupo.rewards import ExactMatch, ImportedReward, MathEqual
from tests.helpers.toy_rewards import RIGHT, TASK, every, judged, one


def boom():
    raise ValueError("boom")


class Nameless(Exception):
    def __str__(self):
        raise RuntimeError("not even this")


def nameless():
    raise Nameless


async def async_boom():
    raise KeyError("boom")


async def async_hang():
    await asyncio.Event().wait()


async def stubborn():
    for _ in range(5):
        try:
            await asyncio.sleep(0.2)
        except asyncio.CancelledError:
            continue


async def gives_up():
    raise asyncio.CancelledError


@pytest.mark.parametrize(
    ("function", "said"),
    [
        (boom, "raised ValueError: boom"),
        (nameless, "Nameless: <exception str() failed>"),
        (sys.exit, "raised SystemExit"),
        (lambda: time.sleep(1.0), "did not answer within 0.2 s"),
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
        (async_boom, "raised KeyError: 'boom'"),
        (async_hang, "did not answer within 0.2 s"),
        (stubborn, "did not answer within 0.2 s"),
        (gives_up, "CancelledError"),
    ],
)
def test_what_goes_wrong_with_one_rollout_is_said_of_it_alone(function, said):
    right, wrong = one(function, time_limit=0.2)
    assert (right.reward, right.error) == (1.0, "")
    assert wrong.error.startswith("task key, rollout 1: reward 'acc' ")
    assert said in wrong.error
    assert np.isnan(wrong.reward)


@pytest.mark.parametrize(
    ("function", "said"),
    [
        (boom, "raised ValueError: boom"),
        (lambda: time.sleep(1.0), "did not answer within 0.2 s"),
        (async_hang, "did not answer within 0.2 s"),
        (lambda: [1.0], "returned 1 numbers, not one number for each of 2 rollouts"),
        (lambda: 1.0, "returned a float, not one number for each of 2"),
        (lambda: None, "returned a NoneType"),
        (lambda: "ab", "returned a str"),
        (lambda: {"score": 1.0}, "returned a dict"),
        (lambda: torch.tensor(1.0), "returned a Tensor"),
    ],
)
def test_what_goes_wrong_with_a_group_is_said_of_every_rollout(function, said):
    verdicts = every(function, time_limit=0.2)
    assert [v.error[:20] for v in verdicts] == ["task key, rollout 0:", "task key, rollout 1:"]
    assert all(said in verdict.error for verdict in verdicts)


def test_one_bad_number_in_a_group_fails_one_rollout():
    right, wrong = every(lambda: [1.0, float("nan")])
    assert (right.reward, right.error) == (1.0, "")
    assert wrong.error == "task key, rollout 1: reward 'acc' returned nan"


def test_none_of_a_group_does_not_apply_and_is_left_out_of_the_sum():
    some = RewardTerm("some", lambda completions: [None, 1.0], 3.0)
    first, second = judged(RewardTerm("acc", ExactMatch()), some)
    assert (first.reward, dict(first.reward_terms), first.error) == (1.0, {"acc": 1.0}, "")
    assert (second.reward, dict(second.reward_terms)) == (0.0 + 3.0, {"acc": 0.0, "some": 1.0})


def test_a_rollout_to_which_nothing_applies_has_failed():
    first, second = judged(RewardTerm("some", lambda completions: [None, 1.0]))
    assert first.error == "task key, rollout 0: no reward applies: each said None"
    assert (second.reward, second.error) == (1.0, "")


def test_one_failing_part_fails_the_rollout_and_the_others_are_still_told():
    verdict, _ = judged(
        RewardTerm("acc", ExactMatch()), RewardTerm("bad", lambda task, rollout: boom())
    )
    assert (dict(verdict.reward_terms), "reward 'bad' raised" in verdict.error) == (
        {"acc": 1.0},
        True,
    )


def test_a_fallback_gives_the_value_and_counts_the_failure():
    right, wrong = one(boom, on_failure=FallbackReward(-1.0))
    assert (right.reward, dict(right.reward_terms)) == (1.0, {"acc": 1.0})
    assert (wrong.reward, dict(wrong.reward_terms), wrong.error) == (-1.0, {"failed": 1.0}, "")


def test_stop_ends_the_run_with_everything_in_the_error():
    with pytest.raises(
        RewardError, match=r"task key, rollout 1: reward 'acc' raised ValueError: boom"
    ):
        one(boom, on_failure=raise_error)


def test_hanging_rewards_do_not_keep_later_ones_from_their_turn():
    """Twice as many hang as may run at once, then one answers."""
    rollouts = [Rollout(source=str(n)) for n in range(17)]

    def reward(task, rollout):
        return 1.0 if rollout.source == "16" else time.sleep(1.0)

    verdicts = judged(RewardTerm("acc", reward), rollouts=rollouts, time_limit=0.1)
    assert [v.error == "" for v in verdicts] == [False] * 16 + [True]


def test_a_busy_loop_is_not_held_against_a_reward_that_answered():
    async def selfish(task, rollout):
        time.sleep(0.5)  # blocks the loop until long after the other's limit
        return 0.0

    def quick(task, rollout):
        return time.sleep(0.1) or 1.0

    parts = RewardTerm("quick", quick), RewardTerm("selfish", selfish)
    (verdict,) = judged(*parts, rollouts=[RIGHT], time_limit=0.3)
    assert verdict.reward_terms["quick"] == 1.0


def test_a_comparison_that_hangs_fails_its_rollout_alone():
    hangs = Rollout((("?", Action((), (), text="$9^{9^{9^{9}}}$")),))
    right, wrong = judged(RewardTerm("math", MathEqual(time_limit=0.5)), rollouts=(RIGHT, hangs))
    assert (right.reward, right.error) == (1.0, "")
    assert "killed after 0.5 s" in wrong.error


def test_a_reward_by_its_place_is_asked_rollout_by_rollout(tmp_path):
    file = tmp_path / "mine.py"
    file.write_text("def score(task, rollout):\n    return 1 / (rollout.length - 1)\n")
    first, second = judged(RewardTerm("acc", ImportedReward(f"{file}:score")))
    assert "raised ZeroDivisionError" in first.error
    assert second.reward == 1 / 2


def test_a_failed_rollout_reaches_its_group_as_failed():
    world = SingleTurn((RewardTerm("acc", lambda task, rollout: boom()),))
    group: Group = asyncio.run(score_group(TASK, world, [RIGHT]))
    assert "boom" in group.rollouts[0].error


@pytest.mark.parametrize("ticks", range(4))
def test_a_wait_that_is_called_off_just_as_it_ends_is_called_off(ticks):
    async def called_off():
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

    asyncio.run(called_off())
