"""Errors that are planted into assembled methods: each must make the comparison fail.

An error that changes nothing on any batch cannot matter to a method: it has no clip, no KL, no
filter. `outcome` distinguishes it from an error that the method's reference does not see.
"""

import copy
from collections.abc import Callable, Generator
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, fields, is_dataclass, replace
from typing import Any
from unittest.mock import patch

import numpy as np
import torch
from torch import Tensor
from torch.overrides import TorchFunctionMode

from grupo.algo.advantages import Whiten, chain
from grupo.algo.aggregation import sequence_mean, token_mean
from grupo.algo.filters import keep_all
from grupo.algo.losses import Loss, ScaledLoss, SumLoss
from grupo.algo.minibatches import SingleUpdate, Updates
from grupo.core import group_ops
from grupo.core.batch import Batch, PerAction, Signals, broadcast_to_tokens
from grupo.core.component import component
from grupo.core.requires import Requires, merged_requires
from grupo.core.schedules import resolve_schedules
from grupo.method import Method
from tests.reference.assembled.comparison import UpdateTrace, case_of, trace_of
from tests.reference.assembled_numpy.case import CaseOptions

SEEN, UNSEEN, CANNOT_MATTER = "seen", "unseen", "cannot matter"
DIFFERENT = 1e-6  # relative difference of an array; the comparison fails from 1e-9 on
SEEDS = (0, 1, 2)  # of the cases on which methods and references are compared
# batches on which an error that no comparison sees may matter
OTHER_OPTIONS = (
    {"seed": 3},
    {"seed": 4},
    {"seed": 5, "ratio_spread": 0.6},
    {"seed": 6, "ratio_spread": 2.0},
)
OTHER_REWARDS = (
    {"seed": 7, "reward": "binary", "ratio_spread": 0.6},
    {"seed": 8, "groups": (8, 7), "reward": "binary", "ratio_spread": 0.6},
)
BOUND_FACTORS = (0.95, 1.05)  # of lower and of upper bounds
OTHER_SIDE = {
    torch.min: torch.max,
    torch.max: torch.min,
    torch.minimum: torch.maximum,
    torch.maximum: torch.minimum,
}
THRESHOLDS = (torch.Tensor.gt, torch.Tensor.ge, torch.Tensor.lt, torch.Tensor.le)


@dataclass(frozen=True)
class PlantedError:
    """A change that makes a method wrong.

    Args:
        plant: The changed method.
        patched: Surroundings in which the changed method is evaluated.
    """

    plant: Callable[[Method], Method]
    patched: Callable[[], Any] = nullcontext


@component
class Negated:
    """-x."""

    def __call__(self, x: Tensor, batch: Batch) -> Tensor:
        return -x


@component
class TimesRows:
    """A sum over rows in place of the mean."""

    inner: Callable[[Batch], Tensor]

    @property
    def requires(self) -> Requires:
        return merged_requires(self.inner)

    def __call__(self, batch: Batch) -> PerAction:
        return self.inner(batch) * batch.mask.any(1).sum()


@component
class InMode(Loss):
    """A loss whose operations are changed while it is computed."""

    loss: Loss
    mode: Callable[[], TorchFunctionMode]

    @property
    def requires(self) -> Requires:
        return merged_requires(self.loss)

    def __call__(self, pi: Signals, batch: Batch) -> PerAction:
        with self.mode():
            return self.loss(pi, batch)


class SwappedSides(TorchFunctionMode):
    """The smaller of two tensors is the larger one, and the reverse."""

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        of_two = len(args) > 1 and isinstance(args[1], Tensor)
        return (OTHER_SIDE.get(func, func) if of_two else func)(*args, **(kwargs or {}))


class ShiftedBounds(TorchFunctionMode):
    """Bounds of clamps and thresholds of comparisons are 5 % wider."""

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = dict(kwargs or {})
        if func in (torch.clamp, torch.Tensor.clamp):
            x, *bounds = args
            low, high = [*bounds, None, None][:2]
            low, high = kwargs.pop("min", low), kwargs.pop("max", high)
            return torch.clamp(x, _scaled(low, 0), _scaled(high, 1))
        if func in THRESHOLDS and isinstance(args[1], float):
            args = (args[0], _scaled(args[1], int(args[1] >= 1)), *args[2:])
        return func(*args, **kwargs)


def _scaled(bound: Any, side: int) -> Any:
    """A bound that is 5 % wider; labels and guards of divisions (0, 1/2, 1, tiny) stay."""
    if isinstance(bound, int | float) and (bound in (0, 0.5, 1) or abs(bound) < 1e-4):
        return bound
    return bound if bound is None else bound * BOUND_FACTORS[side]


def rewritten(value: Any, change: Callable[[Any], Any]) -> Any:
    """A tree of components in which `change` was applied to every value, the leaves first."""
    if isinstance(value, tuple):
        return change(tuple(rewritten(x, change) for x in value))
    if is_dataclass(value) and not isinstance(value, type):
        copied = copy.copy(value)
        for field in fields(value):
            # not `replace`: a planted error may be out of the field's range
            object.__setattr__(copied, field.name, rewritten(getattr(value, field.name), change))
        return change(copied)
    return change(value)


def _swap_std(value: Any) -> Any:
    swapped = {group_ops.std: group_ops.population_std, group_ops.population_std: group_ops.std}
    return swapped.get(value, value) if callable(value) and not is_dataclass(value) else value


@contextmanager
def _swapped_std() -> Generator[None]:
    """Standard deviations divide by n in place of n - 1, and the reverse."""
    std, population_std = group_ops.std, group_ops.population_std

    def whiten(self: Whiten, x: Tensor, batch: Batch) -> Tensor:
        x = broadcast_to_tokens(x, batch)
        n = batch.mask.sum().clamp(min=1)
        centred = (x - x.sum() / n) * batch.mask
        return centred / ((centred**2).sum() / n + self.eps).sqrt()

    with (
        patch.object(group_ops, "std", population_std),
        patch.object(group_ops, "population_std", std),
        patch.object(Whiten, "__call__", whiten),
    ):
        yield


def _other_mean(method: Method) -> Method:
    other = token_mean if method.aggregation == sequence_mean else sequence_mean
    return method.replace(aggregation=other)


def _is_kl(loss: Loss) -> bool:
    """True for the losses of KL divergences, by their names."""
    return "KL" in type(loss).__name__


def _with_kl_factor(factor: float) -> Callable[[Method], Method]:
    """All KL terms, and all fields that are coefficients of KL, times a factor."""

    def change(value: Any) -> Any:
        if isinstance(value, SumLoss):
            parts = [ScaledLoss(factor, x) if _is_kl(x) else x for x in (value.left, value.right)]
            return SumLoss(*parts)
        if isinstance(value, ScaledLoss) and _is_kl(value.loss):
            return ScaledLoss(factor, value)
        if is_dataclass(value):
            for field in fields(value):
                number = getattr(value, field.name)
                if field.name.endswith("kl_coef") and isinstance(number, int | float):
                    object.__setattr__(value, field.name, factor * number)
        return value

    return lambda method: rewritten(method, change)


def _one_update_fewer(method: Method) -> Method:
    """A minibatch or an epoch less; one more where there is a single update."""
    match method.updates:
        case Updates(epochs, minibatches) if minibatches > 1:
            return method.replace(updates=Updates(epochs, minibatches - 1))
        case Updates(epochs, minibatches) if epochs > 1:
            return method.replace(updates=Updates(epochs - 1, minibatches))
        case Updates() | SingleUpdate():
            return method.replace(updates=Updates(1, 2))
    return method.replace(updates=SingleUpdate())


ERRORS = {
    "sign of the advantage": PlantedError(
        lambda m: m.replace(advantage=chain(m.advantage, Negated()))
    ),
    "n for n - 1": PlantedError(lambda m: rewritten(m, _swap_std), _swapped_std),
    "clip side swapped": PlantedError(lambda m: m.replace(loss=InMode(m.loss, SwappedSides))),
    "clip bound shifted": PlantedError(lambda m: m.replace(loss=InMode(m.loss, ShiftedBounds))),
    "token mean for mean of rows": PlantedError(_other_mean),
    "sum for mean": PlantedError(lambda m: m.replace(aggregation=TimesRows(m.aggregation))),
    "KL dropped": PlantedError(_with_kl_factor(0.0)),
    "sign of KL": PlantedError(_with_kl_factor(-1.0)),
    "one update fewer": PlantedError(_one_update_fewer),
    "filter keeps all": PlantedError(lambda m: m.replace(filter=keep_all)),
}


def outcome(method: Method, error: PlantedError, options: CaseOptions) -> str:
    """Whether the comparison of a method sees an error.

    Args:
        method: The method, which equals its reference.
        error: The error.
        options: How the case of its reference differs from the usual one.
    """
    # an error may be planted into a controller's number, which has no value before
    method = resolve_schedules(method, options.progress)
    if any(changes(method, error, replace(options, seed=seed)) for seed in SEEDS):
        return SEEN
    others = [replace(options, **other) for other in OTHER_OPTIONS]
    others += [x for other in OTHER_REWARDS if fits(method, x := replace(options, **other))]
    return UNSEEN if any(changes(method, error, other) for other in others) else CANNOT_MATTER


def fits(method: Method, options: CaseOptions) -> bool:
    """True if the method, without an error, has an update on a case with other rewards."""
    try:
        trace_of(method, case_of(method, options), options)
    except (IndexError, ValueError):  # given terms or groups do not fit these rewards
        return False
    return True


def changes(method: Method, error: PlantedError, options: CaseOptions) -> bool:
    """True if the error changes the update of the method on a case."""
    case = case_of(method, options)
    trace = trace_of(method, case, options)
    with error.patched():
        return _differ(trace, trace_of(error.plant(method), case, options))


def _differ(trace: UpdateTrace, other: UpdateTrace) -> bool:
    """True if two updates differ in rows, the number of updates or a gradient."""
    if (trace.rows, trace.updates) != (other.rows, other.updates):
        return True
    if len(trace.gradients) != len(other.gradients):
        return True
    pairs = zip(trace.gradients, other.gradients, strict=True)
    return any(_is_different(a[name], b[name]) for a, b in pairs for name in a)


def _is_different(x: np.ndarray, y: np.ndarray) -> bool:
    if x.shape != y.shape:
        return True
    scale = max(np.abs(x).max(initial=0.0), 1e-3)
    return not bool((np.abs(x - y) <= DIFFERENT * scale).all())
