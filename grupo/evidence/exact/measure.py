"""Measures methods in all settings of the table of biases."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from math import nan

from grupo.algo.advantages import Center, ScaleByStd, chain, identity
from grupo.algo.aggregation import ConstantLength, sequence_mean, token_mean, token_sum
from grupo.algo.filters import keep_nonzero_std
from grupo.algo.losses import Reinforce
from grupo.catalogue.entries import Entry, methods
from grupo.core import group_ops
from grupo.evidence.exact.gradient import GradientMoments, expected_gradient
from grupo.evidence.exact.reach import obstacle
from grupo.evidence.exact.standard import FIRST_UPDATE, GROUP_SIZE, SETTINGS, BiasSetting
from grupo.method import Method
from grupo.rollouts.samplers import GroupSampler

REINFORCE = Method(advantage=identity, loss=Reinforce(), aggregation=token_sum)
LEAVE_ONE_OUT = REINFORCE.replace(advantage=Center(group_ops.leave_one_out_mean))
CHOICES = {  # single choices, against REINFORCE and against the mean of the others
    "no baseline": REINFORCE,
    "baseline: mean of the others": LEAVE_ONE_OUT,
    "baseline: mean of the group": REINFORCE.replace(advantage=Center()),
    "… and divided by the group's std": REINFORCE.replace(advantage=chain(Center(), ScaleByStd())),
    "mean of the others, groups of equal rewards dropped": LEAVE_ONE_OUT.replace(
        filter=keep_nonzero_std
    ),
    "mean of the others, `sequence_mean`": LEAVE_ONE_OUT.replace(aggregation=sequence_mean),
    "mean of the others, `token_mean`": LEAVE_ONE_OUT.replace(aggregation=token_mean),
    "mean of the others, `ConstantLength(3)`": LEAVE_ONE_OUT.replace(aggregation=ConstantLength(3)),
}
# arguments that belong to the group size, in the proportions of the defaults
GROUP_ARGUMENTS: Mapping[str, Callable[[int], Mapping[str, int]]] = {
    "gfpo": lambda size: {"num_kept": size // 2},
    "mc_grpo": lambda size: {"group_size": size + 1},  # one is the pivot
    "pods": lambda size: {"num_kept": max(2, size // 4)},
}


@dataclass(frozen=True)
class Bias:
    """The measured numbers of a method.

    Args:
        name: Name of the method, as Markdown.
        moments: The moments of its gradient in each setting, by name.
    """

    name: str
    moments: Mapping[str, GradientMoments]

    @property
    def largest_angle(self) -> float:
        """The largest angle of the first update; NaN if it has no gradient in some environment."""
        angles = [self.moments[name].angle for name in FIRST_UPDATE]
        return max(angles) if all(angle == angle for angle in angles) else nan

    @property
    def variance(self) -> float:
        """Variance on the three tasks relative to REINFORCE, at equal expected gradients."""
        return self.moments["tasks"].relative_variance / reinforce_moments().relative_variance


def measure_methods(keys: Iterable[str] = ()) -> Iterator[tuple[str, Bias]]:
    """Measure the methods of the catalogue that can be; yields their keys, too.

    Args:
        keys: The methods; all by default.
    """
    chosen = {*keys} or {entry.key for entry in methods()}
    for entry in methods():
        if entry.key in chosen and not obstacle(entry.method):
            link = f"[{entry.name}](methods/{entry.key}.md)"
            yield entry.key, measure(link, lambda size, entry=entry: sized_method(entry, size))


def measure(name: str, method_of_size: Callable[[int], Method]) -> Bias:
    """Measure one method in all settings.

    Args:
        name: Name of the method, as Markdown.
        method_of_size: Returns the method with a group size.
    """
    moments = {key: moments_in(s, method_of_size(s.group_size)) for key, s in SETTINGS.items()}
    return Bias(name, moments)


def measure_choices() -> list[Bias]:
    """Measure REINFORCE and single changes of it."""
    return [
        measure(name, lambda size, method=method: method.replace(sampler=GroupSampler(size)))
        for name, method in CHOICES.items()
    ]


def moments_in(setting: BiasSetting, method: Method) -> GradientMoments:
    """The moments of a method's gradient in a setting."""
    return expected_gradient(method, setting.env, current=setting.env.moved_logits(setting.moved))


def sized_method(entry: Entry, group_size: int) -> Method:
    """A method of the catalogue with another group size, with its own defaults otherwise."""
    arguments = GROUP_ARGUMENTS.get(entry.key, lambda _: {})(group_size)
    if arguments:
        return entry.function(**{"group_size": group_size, **arguments})
    return entry.method.replace(sampler=GroupSampler(group_size))


@cache
def reinforce_moments() -> GradientMoments:
    """The moments of REINFORCE without a baseline on the three tasks."""
    return moments_in(SETTINGS["tasks"], REINFORCE)


def bias_summary(method: Method) -> str:
    """The angles of a method's first update in one line; why there are none, if there are none.

    >>> from grupo.methods.rloo import rloo
    >>> bias_summary(rloo())
    '0.0 degrees between tasks, 0.0 degrees with graded rewards, 0.0 degrees with lengths'
    """
    if reason := obstacle(method):
        return f"not measured: {reason}"
    method = method.replace(sampler=GroupSampler(GROUP_SIZE))
    # an exception of a user's component is a result of the check
    try:
        angles = [moments_in(SETTINGS[name], method).angle for name in FIRST_UPDATE]
    except Exception as error:
        return f"not measured: it raised {type(error).__name__}: {error}"
    shown = [f"{x:.1f} degrees" if x == x else "no gradient" for x in angles]
    between_tasks, graded, lengths = shown
    return f"{between_tasks} between tasks, {graded} with graded rewards, {lengths} with lengths"
