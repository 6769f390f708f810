"""The values that rewards return, as results of rollouts: finite numbers, or the error."""

import math
from collections.abc import Mapping, Sequence
from numbers import Real
from typing import Any

import numpy as np
from torch import Tensor

from grupo.core.limits import REWARD
from grupo.core.types import RewardResult
from grupo.envs.reward_term import RewardTerm
from grupo.envs.timeouts import CallFailure, failure_from_exception

ARRAY_TYPES = (np.generic, np.ndarray, Tensor)
# what float(), .item() and .tolist() raise for values that are no finite number
NOT_A_NUMBER_ERRORS = (TypeError, ValueError, OverflowError, RuntimeError)


def finite_float(value: object) -> float:
    """A finite number as a float.

    Raises:
        TypeError: `value` is not a real number.
        ValueError: `value` is infinite or NaN.

    >>> finite_float(True), finite_float(np.float32(0.5)), finite_float(3)
    (1.0, 0.5, 3.0)
    """
    plain = value.item() if isinstance(value, ARRAY_TYPES) else value
    if not isinstance(plain, Real):
        raise TypeError(f"returned a {type(plain).__name__}, not a number")
    if not math.isfinite(plain):
        raise ValueError(f"returned {plain}")
    return float(plain)


def weighted_reward(score: float, weight: float = 1.0) -> float:
    """The reward of a score.

    Raises:
        ValueError: It exceeds the limit of rewards.

    >>> weighted_reward(3.0, 0.5)
    1.5
    """
    reward = weight * score
    if abs(reward) > REWARD.maximum:
        raise ValueError(
            f"returned {score:g}, which is {reward:g} with its weight: {REWARD.allowed}"
        )
    return reward


def term_result(term: RewardTerm, returned: Any) -> RewardResult:
    """The part of a rollout's score that a reward term contributes.

    Its `reward` is weighted, its `reward_terms` are not. The term's own name is missing in them if
    the term does not apply to the rollout or failed; an error names the term.

    Args:
        term: The reward term.
        returned: The value that the term's reward returned for the rollout: a number; a mapping
            with the number as "score", beside numbers that become terms `name/key` and sequences
            that become step values; None, if the term does not apply; or an exception.
    """
    if isinstance(returned, Exception):
        returned = failure_from_exception(returned)
    if isinstance(returned, CallFailure):
        return failed_result(term, returned.reason)
    values = returned if isinstance(returned, Mapping) else {"score": returned}
    extras = {str(name): value for name, value in values.items() if name != "score"}
    if "score" not in values:
        return failed_result(term, f"returned a mapping without 'score': {', '.join(extras)}")
    extra_terms = {f"{term.name}/{name}": x for name, x in _finite_numbers(extras).items()}
    if values["score"] is None:
        return RewardResult(0.0, extra_terms)
    try:
        score = finite_float(values["score"])
        reward = weighted_reward(score, term.weight)
    except NOT_A_NUMBER_ERRORS as error:
        return failed_result(term, str(error))
    terms = {term.name: score, **extra_terms}
    return RewardResult(reward, terms, _finite_sequences(extras))


def failed_result(term: RewardTerm, reason: str) -> RewardResult:
    """The result of a term that has no value, for a reason such as "returned nan"."""
    return RewardResult(error=f"reward {term.name!r} {reason}")


def rollout_result(term: RewardTerm, returned: Any) -> RewardResult:
    """The result of a per-rollout reward, for which None is an error: a missing `return`."""
    if isinstance(returned, CallFailure) and returned.answer_error:
        return _answer_error_result(term)
    result = term_result(term, returned)
    if result.error or term.name in result.reward_terms:
        return result
    return failed_result(term, "returned None, not a number")


def single_result(term: RewardTerm, returned: Any) -> RewardResult:
    """The result of a group reward that was called with one rollout alone."""
    if isinstance(returned, CallFailure) and returned.answer_error:
        return _answer_error_result(term)
    (result,) = group_results(term, returned, 1)
    return result


def group_results(term: RewardTerm, returned: Any, count: int) -> Sequence[RewardResult]:
    """The results of a group reward: a list, tuple or array with one entry per rollout."""
    if isinstance(returned, CallFailure):
        return [failed_result(term, returned.reason)] * count
    values = returned.tolist() if isinstance(returned, np.ndarray | Tensor) else returned
    if not isinstance(values, list | tuple):
        problem = f"a {type(returned).__name__}"
    elif len(values) != count:
        problem = f"{len(values)} numbers"
    else:
        return [term_result(term, value) for value in values]
    error = f"returned {problem}, not one number for each of {count} rollouts"
    return [failed_result(term, error)] * count


def _answer_error_result(term: RewardTerm) -> RewardResult:
    """The result of an answer on which a working grader fails."""
    score = term.answer_error_score
    return RewardResult(term.weight * score, {term.name: score, "answer_error": 1.0})


def _finite_numbers(values: Mapping[str, Any]) -> dict[str, float]:
    """The entries that are finite numbers; texts and other objects are no reward terms."""
    numbers = {}
    for name, value in values.items():
        try:
            numbers[name] = finite_float(value)
        except NOT_A_NUMBER_ERRORS:
            continue
    return numbers


def _finite_sequences(values: Mapping[str, Any]) -> dict[str, tuple[float, ...]]:
    """The entries that are sequences of finite numbers: step values of the rollout's responses."""
    sequences = {}
    for name, value in values.items():
        try:
            plain = value.tolist() if isinstance(value, ARRAY_TYPES) else value
            if isinstance(plain, list | tuple):
                sequences[name] = tuple(map(finite_float, plain))
        except NOT_A_NUMBER_ERRORS:
            continue
    return sequences
