"""Any Python function as a reward, by the names of its parameters."""

import inspect
from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import Any

from grupo.core.component import piece
from grupo.core.errors import Refused
from grupo.core.types import Rollout, Task
from grupo.rewards.base import EachBy, EachRollout, Reward
from grupo.rewards.trl_verl import Trl, Verl, VerlBatch
from grupo.tasks.finding import find

VERL = ("data_source", "solution_str", "ground_truth", "extra_info")
# how such a function is written; a name by which it is known; all names it can be given, where
# they are known beforehand; what makes a reward of it
FORMS: tuple[tuple[str, str, Sequence[str], Callable[[Any], Reward]], ...] = (
    ("f(task, rollouts)", "rollouts", ("task", "rollouts"), lambda f: f),
    ("f(task, rollout)", "rollout", ("task", "rollout"), EachBy),
    ("f(data_source, solution_str, ground_truth, extra_info)", "solution_str", VERL, Verl),
    (
        "f(data_sources, solution_strs, ground_truths, extra_infos)",
        "solution_strs",
        ("data_sources", "solution_strs", "ground_truths", "extra_infos"),
        VerlBatch,
    ),
    ("f(prompts, completions, **columns)", "completions", (), Trl),
    ("f(completion_ids, **columns)", "completion_ids", (), Trl),
)


def adapt(function: Callable[..., Any]) -> Reward:
    """The reward that a function is; rewards pass.

    >>> def compute_score(data_source, solution_str, ground_truth, extra_info=None):
    ...     return float(solution_str == ground_truth)
    >>> adapt(compute_score)
    Verl(function=adapt.compute_score)
    """
    if not callable(function):
        raise Refused(f"{function!r} is not a function. {_allowed()}")
    parameters = _parameters(function)
    for _, known_by, names, made in FORMS:
        if known_by in parameters and _fits(parameters, names):
            return made(function)
    shown = f"({', '.join(map(str, parameters.values()))})"
    raise Refused(f"{_called(function)}{shown} fits no form of a reward function. {_allowed()}")


def _parameters(function: Callable[..., Any]) -> dict[str, inspect.Parameter]:
    try:
        return dict(inspect.signature(function).parameters)
    except (TypeError, ValueError) as error:
        raise Refused(f"{_called(function)} has no signature to read. {_allowed()}") from error


def _fits(parameters: dict[str, inspect.Parameter], names: Sequence[str]) -> bool:
    """Can the function be called with these names, our own two in their order?"""
    named = [p for p in parameters.values() if p.kind in (p.POSITIONAL_OR_KEYWORD, p.KEYWORD_ONLY)]
    required = [p.name for p in named if p.default is p.empty]
    in_order = "task" not in names or [p.name for p in named[:2]] == list(names)
    return in_order and (not names or set(required) <= set(names))


def _called(function: Callable[..., Any]) -> str:
    return getattr(function, "__qualname__", type(function).__name__)


def _allowed() -> str:
    return f"Allowed: {'; '.join(written for written, *_ in FORMS)}."


def load(place: str) -> Reward:
    """The reward that the function at `module:function` or `file.py:function` is."""
    return adapt(find(place))


@piece
class Python:
    """The reward function at `module:function` or `file.py:function`; prints as that place."""

    place: str

    def __post_init__(self) -> None:
        self.found()

    def found(self) -> Reward:
        """The reward that is there."""
        return _found(self.place)

    def __call__(self, task: Task, rollouts: Sequence[Rollout]) -> Any:
        return self.found()(task, rollouts)


@lru_cache(maxsize=64)
def _found(place: str) -> Reward:
    return load(place)


def each(reward: Callable[..., Any]) -> Callable[[Task, Rollout], Any] | None:
    """How a reward judges one rollout by itself, where it does."""
    opened = reward.found() if isinstance(reward, Python) else reward
    return opened.judge if isinstance(opened, EachRollout) else None
