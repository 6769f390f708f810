"""From what a reward returned to numbers, or why it is none."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from numbers import Real
from typing import Any

import numpy as np
from torch import Tensor

from grupo.envs.timeouts import CallFailure

ARRAY_TYPES = (np.generic, np.ndarray, Tensor)


@dataclass(frozen=True)
class ParsedReward:
    """What one part says of one rollout: a number, that it does not apply, or why it failed."""

    score: float = 0.0
    extra_terms: Mapping[str, float] = field(default_factory=dict)  # other numbers it gave, by name
    step_values: Mapping[str, tuple[float, ...]] = field(
        default_factory=dict
    )  # one for each action
    applies: bool = True
    error: str = ""


def finite_float(value: object) -> float:
    """A finite number as a float; raises when it is none.

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
    """One rollout's mark: a number, None, or a mapping with a `score`."""
    if isinstance(returned, CallFailure):
        return ParsedReward(error=returned.reason)
    if isinstance(returned, Mapping):
        more = {str(name): x for name, x in returned.items() if name != "score"}
        if "score" not in returned:
            return ParsedReward(error=f"returned a mapping without 'score': {', '.join(more)}")
        return _parse_score(returned["score"], _finite_numbers(more), _finite_sequences(more))
    return _parse_score(returned)


def _parse_score(
    score: Any,
    extra_terms: Mapping[str, float] = {},
    step_values: Mapping[str, tuple[float, ...]] = {},
) -> ParsedReward:
    if score is None:
        return ParsedReward(extra_terms=extra_terms, applies=False)
    try:
        return ParsedReward(finite_float(score), extra_terms, step_values)
    except (TypeError, ValueError, OverflowError, RuntimeError) as error:
        return ParsedReward(error=str(error))


def parse_rollout_reward(returned: Any) -> ParsedReward:
    """The mark of a reward that judges one rollout: there, None is a forgotten `return`."""
    mark = parse_reward(returned)
    return mark if mark.applies else ParsedReward(error="returned None, not a number")


def parse_group_rewards(returned: Any, count: int) -> Sequence[ParsedReward]:
    """The marks of a reward that judges a group: as many as it has rollouts."""
    if isinstance(returned, CallFailure):
        return [ParsedReward(error=returned.reason)] * count
    values = returned.tolist() if isinstance(returned, np.ndarray | Tensor) else returned
    if not isinstance(values, list | tuple):
        given = f"a {type(returned).__name__}"
    elif len(values) != count:
        given = f"{len(values)} numbers"
    else:
        return [parse_reward(value) for value in values]
    return [
        ParsedReward(error=f"returned {given}, not one number for each of {count} rollouts")
    ] * count


def _finite_numbers(values: Mapping[str, Any]) -> dict[str, float]:
    """Those that are finite numbers; texts and the like are not parts of a reward."""
    found = {}
    for name, value in values.items():
        try:
            found[name] = finite_float(value)
        except (TypeError, ValueError, OverflowError, RuntimeError):
            continue
    return found


def _finite_sequences(values: Mapping[str, Any]) -> dict[str, tuple[float, ...]]:
    """Those that are sequences of finite numbers: marks of a rollout's actions."""
    found = {}
    for name, value in values.items():
        try:
            plain = value.tolist() if isinstance(value, ARRAY_TYPES) else value
            if isinstance(plain, list | tuple):
                found[name] = tuple(map(finite_float, plain))
        except (TypeError, ValueError, OverflowError, RuntimeError):
            continue
    return found
