"""Validation of reward values: finite numbers, or the reason why a value is none."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from numbers import Real
from typing import Any

import numpy as np
from torch import Tensor

from grupo.envs.timeouts import CallFailure, failure_from_exception

ARRAY_TYPES = (np.generic, np.ndarray, Tensor)
# what float(), .item() and .tolist() raise for values that are no finite number
NOT_A_NUMBER_ERRORS = (TypeError, ValueError, OverflowError, RuntimeError)


@dataclass(frozen=True)
class ParsedReward:
    """The value of one reward term for one rollout.

    Args:
        score: The value.
        extra_terms: Further numbers that the reward function returned, by name.
        step_values: Sequences that it returned, one number per item of the rollout's responses.
        applies: False if the function returned None: the term is left out of the sum.
        error: Why there is no value; "" if there is one.
        answer_error: True if the score is that of an answer on which a working grader fails.
    """

    score: float = 0.0
    extra_terms: Mapping[str, float] = field(default_factory=dict)
    step_values: Mapping[str, tuple[float, ...]] = field(default_factory=dict)
    applies: bool = True
    error: str = ""
    answer_error: bool = False


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


def parse_reward(returned: Any) -> ParsedReward:
    """Parse one rollout's reward: a number, None, a mapping that has a `score`, or an error."""
    if isinstance(returned, Exception):
        returned = failure_from_exception(returned)
    if isinstance(returned, CallFailure):
        return ParsedReward(error=returned.reason)
    if not isinstance(returned, Mapping):
        return _parse_score(returned)
    extras = {str(name): value for name, value in returned.items() if name != "score"}
    if "score" not in returned:
        return ParsedReward(error=f"returned a mapping without 'score': {', '.join(extras)}")
    return _parse_score(returned["score"], _finite_numbers(extras), _finite_sequences(extras))


def _parse_score(
    score: Any,
    extra_terms: Mapping[str, float] = {},
    step_values: Mapping[str, tuple[float, ...]] = {},
) -> ParsedReward:
    if score is None:
        return ParsedReward(extra_terms=extra_terms, applies=False)
    try:
        return ParsedReward(finite_float(score), extra_terms, step_values)
    except NOT_A_NUMBER_ERRORS as error:
        return ParsedReward(error=str(error))


def parse_rollout_reward(returned: Any) -> ParsedReward:
    """Parse the value of a per-rollout reward, for which None is an error: a missing `return`."""
    parsed = parse_reward(returned)
    return parsed if parsed.applies else ParsedReward(error="returned None, not a number")


def parse_group_rewards(returned: Any, count: int) -> Sequence[ParsedReward]:
    """Parse the values of a group reward: a list, tuple or array with one entry per rollout."""
    if isinstance(returned, CallFailure):
        return [ParsedReward(error=returned.reason)] * count
    values = returned.tolist() if isinstance(returned, np.ndarray | Tensor) else returned
    if not isinstance(values, list | tuple):
        problem = f"a {type(returned).__name__}"
    elif len(values) != count:
        problem = f"{len(values)} numbers"
    else:
        return [parse_reward(value) for value in values]
    error = f"returned {problem}, not one number for each of {count} rollouts"
    return [ParsedReward(error=error)] * count


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
