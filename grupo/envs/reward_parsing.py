"""From what a reward returned to numbers, or why it is none."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from numbers import Real
from typing import Any

import numpy as np
from torch import Tensor

from grupo.envs.timeouts import Failure

ARRAYS = (np.generic, np.ndarray, Tensor)


@dataclass(frozen=True)
class Marked:
    """What one part says of one rollout: a number, that it does not apply, or why it failed."""

    score: float = 0.0
    more: Mapping[str, float] = field(default_factory=dict)  # other numbers it gave, by name
    marks: Mapping[str, tuple[float, ...]] = field(default_factory=dict)  # one for each action
    applies: bool = True
    failed: str = ""


def number(value: object) -> float:
    """A finite number as a float; raises when it is none.

    >>> number(True), number(np.float32(0.5)), number(3)
    (1.0, 0.5, 3.0)
    """
    plain = value.item() if isinstance(value, ARRAYS) else value
    if not isinstance(plain, Real):
        raise TypeError(f"returned a {type(plain).__name__}, not a number")
    if not math.isfinite(plain):
        raise ValueError(f"returned {plain}")
    return float(plain)


def marked(said: Any) -> Marked:
    """One rollout's mark: a number, None, or a mapping with a `score`."""
    if isinstance(said, Failure):
        return Marked(failed=said.why)
    if isinstance(said, Mapping):
        more = {str(name): x for name, x in said.items() if name != "score"}
        if "score" not in said:
            return Marked(failed=f"returned a mapping without 'score': {', '.join(more)}")
        return _marked(said["score"], _numbers(more), _sequences(more))
    return _marked(said)


def _marked(
    score: Any,
    more: Mapping[str, float] = {},
    marks: Mapping[str, tuple[float, ...]] = {},
) -> Marked:
    if score is None:
        return Marked(more=more, applies=False)
    try:
        return Marked(number(score), more, marks)
    except (TypeError, ValueError, OverflowError, RuntimeError) as error:
        return Marked(failed=str(error))


def alone(said: Any) -> Marked:
    """The mark of a reward that judges one rollout: there, None is a forgotten `return`."""
    mark = marked(said)
    return mark if mark.applies else Marked(failed="returned None, not a number")


def together(said: Any, count: int) -> Sequence[Marked]:
    """The marks of a reward that judges a group: as many as it has rollouts."""
    if isinstance(said, Failure):
        return [Marked(failed=said.why)] * count
    values = said.tolist() if isinstance(said, np.ndarray | Tensor) else said
    if not isinstance(values, list | tuple):
        given = f"a {type(said).__name__}"
    elif len(values) != count:
        given = f"{len(values)} numbers"
    else:
        return [marked(value) for value in values]
    return [Marked(failed=f"returned {given}, not one number for each of {count} rollouts")] * count


def _numbers(values: Mapping[str, Any]) -> dict[str, float]:
    """Those that are finite numbers; texts and the like are not parts of a reward."""
    found = {}
    for name, value in values.items():
        try:
            found[name] = number(value)
        except (TypeError, ValueError, OverflowError, RuntimeError):
            continue
    return found


def _sequences(values: Mapping[str, Any]) -> dict[str, tuple[float, ...]]:
    """Those that are sequences of finite numbers: marks of a rollout's actions."""
    found = {}
    for name, value in values.items():
        try:
            plain = value.tolist() if isinstance(value, ARRAYS) else value
            if isinstance(plain, list | tuple):
                found[name] = tuple(map(number, plain))
        except (TypeError, ValueError, OverflowError, RuntimeError):
            continue
    return found
