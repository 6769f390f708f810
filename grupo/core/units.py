"""Units of intervals: what `every`, a warm-up or a window counts.

A rollout step generates groups and makes the updates of its plan; an interval may count either. So
its annotation states the unit, as `RolloutSteps` does, or its name ends with it, as
`warmup_fraction` does.
"""

import inspect
import re
import typing
from collections.abc import Callable, Mapping
from typing import Annotated, Any

from annotated_types import Ge

ROLLOUT_STEPS = "rollout steps"  # each generates rollouts, then makes the updates of its plan
UPDATES = "updates"  # of the optimizer, one or several per rollout step
TOKENS = "tokens"
EVALUATIONS = "evaluations"  # during training, every `evaluation.every` rollout steps
UNITS = (ROLLOUT_STEPS, UPDATES, TOKENS, EVALUATIONS)
UNIT_SUFFIXES = ("fraction", "seconds", "tokens", "turns", "updates")
INTERVAL_WORDS = ("every", "interval", "window", "warmup", "horizon", "patience", "lag", "period")

RolloutSteps = Annotated[int, Ge(1), ROLLOUT_STEPS]
RolloutStepsOrNever = Annotated[int, Ge(0), ROLLOUT_STEPS]  # 0: never
Tokens = Annotated[int, Ge(1), TOKENS]
EvaluationsOrNever = Annotated[int, Ge(0), EVALUATIONS]  # 0: never

_INTERVAL_NAME = re.compile(rf"(^|_)({'|'.join(INTERVAL_WORDS)})(_|$)")


def intervals(owner: Callable[..., Any]) -> Mapping[str, Any]:
    """The parameters of a function or a class that are intervals by name, with their types."""
    names = [name for name in inspect.signature(owner).parameters if _INTERVAL_NAME.search(name)]
    if not names:  # other annotations need not be evaluated
        return {}
    parameters = inspect.signature(owner, eval_str=True).parameters
    return {name: parameters[name].annotation for name in names}


def intervals_without_unit(owner: Callable[..., Any]) -> list[str]:
    """The numeric intervals among the parameters of a function or a class that state no unit.

    >>> def stated(save_every: RolloutSteps, warmup_fraction: float, window: "list[int]"): ...
    >>> def unstated(save_every: int, lag: float): ...
    >>> intervals_without_unit(stated), intervals_without_unit(unstated)
    ([], ['save_every', 'lag'])
    """
    return [
        name
        for name, hint in intervals(owner).items()
        if not name.endswith(UNIT_SUFFIXES) and _is_number(hint) and not unit_of(hint)
    ]


def unit_of(hint: Any) -> str:
    """The unit that an annotation states, "" if it states none.

    >>> unit_of(RolloutSteps), unit_of(int)
    ('rollout steps', '')
    """
    if typing.get_origin(hint) is not Annotated:
        return ""
    return next((text for text in typing.get_args(hint)[1:] if text in UNITS), "")


def _is_number(hint: Any) -> bool:
    """True for a number, also within a union or with a range, and for no annotation at all."""
    if typing.get_origin(hint) is Annotated:
        return _is_number(typing.get_args(hint)[0])
    if isinstance(hint, type) and not typing.get_args(hint):
        return issubclass(hint, int | float) or hint is inspect.Parameter.empty
    return typing.get_origin(hint) not in (tuple, list, frozenset, set) and any(
        map(_is_number, typing.get_args(hint))
    )
