"""An answer on which a working grader exceeds a limit scores 0 and is counted."""

import asyncio
import time

import pytest

from grupo.core.types import Response, Rollout
from grupo.envs import FallbackReward, RewardError, RewardTerm, raise_error
from grupo.rewards import AnswerError, ExactMatch, MathEqual
from tests.helpers.toy_rewards import CORRECT, WRONG, score, score_group_by, score_wrong_by

COUNTED = {"acc": 0.0, "answer_error": 1.0}


async def hang_async():
    await asyncio.Event().wait()


async def ignore_cancellation():
    for _ in range(10):
        try:
            await asyncio.sleep(0.1)
        except asyncio.CancelledError:
            continue


def recurse():
    return recurse()


def raise_memory_error():
    raise MemoryError


def raise_answer_error():
    raise AnswerError("the answer is too deep")


@pytest.mark.parametrize(
    "fails_on_the_wrong_answer",
    [
        lambda: time.sleep(0.5),
        hang_async,
        ignore_cancellation,
        recurse,
        raise_memory_error,
        raise_answer_error,
    ],
)
def test_an_answer_that_exceeds_a_limit_scores_zero_and_is_counted(fails_on_the_wrong_answer):
    correct, wrong = score_wrong_by(fails_on_the_wrong_answer, time_limit=0.1)
    assert (correct.reward, dict(correct.reward_terms), correct.error) == (1.0, {"acc": 1.0}, "")
    assert (wrong.reward, dict(wrong.reward_terms), wrong.error) == (0.0, COUNTED, "")


@pytest.mark.parametrize("fails", [lambda: time.sleep(0.5), hang_async, recurse])
def test_a_grader_that_exceeds_a_limit_on_the_reference_answer_too_fails(fails):
    def reward(task, rollout):
        return 1.0 if rollout is CORRECT else fails()

    correct, wrong = score(RewardTerm("acc", reward), time_limit=0.1)
    assert (correct.reward, correct.error) == (1.0, "")
    assert wrong.error.startswith("task key, rollout 1: reward 'acc' ")
    assert "answer_error" not in wrong.reward_terms


def test_a_call_that_exceeds_its_limit_once_has_the_value_of_the_repeated_call():
    calls = []

    def slow_at_first():
        calls.append(1)
        return time.sleep(0.5) if len(calls) == 1 else 0.25

    _, wrong = score_wrong_by(slow_at_first, time_limit=0.1)
    assert (wrong.reward, dict(wrong.reward_terms), wrong.error) == (0.25, {"acc": 0.25}, "")


@pytest.mark.parametrize(
    ("on_failure", "reward"), [(raise_error, 0.0), (FallbackReward(-1.0), 0.0)]
)
def test_the_failure_handler_is_not_used_for_answer_errors(on_failure, reward):
    _, wrong = score_wrong_by(raise_memory_error, on_failure=on_failure)
    assert (wrong.reward, dict(wrong.reward_terms)) == (reward, COUNTED)


def test_an_exception_of_a_reward_function_is_left_to_the_failure_handler():
    with pytest.raises(RewardError, match="raised ZeroDivisionError"):
        score_wrong_by(lambda: 1 / 0, on_failure=raise_error)


def test_a_term_states_the_score_of_an_answer_error():
    def reward(task, rollout):
        return 1.0 if rollout.text == "4" else raise_memory_error()

    term = RewardTerm("acc", reward, weight=2.0, answer_error_score=-1.0)
    correct, wrong = score(term, RewardTerm("exact", ExactMatch()))
    assert correct.reward == 2.0 * 1 + 1
    assert wrong.reward == 2.0 * -1 + 0
    assert dict(wrong.reward_terms) == {"acc": -1.0, "exact": 0.0, "answer_error": 1.0}


def test_a_group_reward_that_exceeds_its_limit_fails_every_rollout():
    """It may compare the answers, so none of them can be scored by itself."""

    def reward(task, rollouts):
        return time.sleep(0.5) if WRONG in rollouts else [1.0] * len(rollouts)

    results = score(RewardTerm("acc", reward), time_limit=0.1)
    assert all("did not return within 0.1 s" in result.error for result in results)


@pytest.mark.parametrize("fails", [lambda: time.sleep(0.5), recurse, raise_answer_error])
def test_a_function_of_trl_or_verl_is_called_for_each_answer_after_an_exceeded_limit(fails):
    def trl(completions):
        return fails() if "5" in completions else [float(text == "4") for text in completions]

    def verl_batch(solution_strs, ground_truths):
        return trl(solution_strs)

    for function in (trl, verl_batch):
        correct, wrong = score(RewardTerm("acc", function), time_limit=0.1)
        assert (correct.reward, dict(correct.reward_terms)) == (1.0, {"acc": 1.0})
        assert (wrong.reward, dict(wrong.reward_terms), wrong.error) == (0.0, COUNTED, "")


def test_a_function_of_trl_that_always_exceeds_its_limit_fails_every_rollout():
    results = score_group_by(lambda: time.sleep(0.5), time_limit=0.1)
    assert all("did not return within 0.1 s" in result.error for result in results)


@pytest.mark.slow
def test_a_math_answer_that_hangs_the_comparison_scores_zero_and_is_counted():
    text = r"\boxed{\binom{1000000}{500000}}"
    hanging = Rollout((("?", Response((), (), text=text)),))
    correct, wrong = score(
        RewardTerm("acc", MathEqual(time_limit=0.5)), rollouts=(CORRECT, hanging)
    )
    assert (correct.reward, dict(correct.reward_terms)) == (1.0, {"acc": 1.0})
    assert (wrong.reward, dict(wrong.reward_terms), wrong.error) == (0.0, COUNTED, "")
