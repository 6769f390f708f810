"""The numbers of a recipe with which the clock can decide a result."""

import typing
from collections.abc import Iterator

from grupo.core.component import is_component, walk
from grupo.core.ranges import describe_range
from grupo.recipe import Recipe

CLOCK_METRICS = ("time/", "time_frac/", "throughput/")


def describe_clock(recipe: Recipe) -> list[str]:
    """A line for each way in which the clock can decide a result of the recipe."""
    limits = ", ".join(dict.fromkeys(_time_limits(recipe)))
    metrics = [x for x in recipe.method.controller_metric_names if x.startswith(CLOCK_METRICS)]
    max_seconds = recipe.early_stopping.max_seconds
    lines = {
        f"{limits}: what takes about that long may fail in one run and not in another": limits,
        f"controllers read {', '.join(metrics)}, which no run repeats": metrics,
        f"early_stopping.max_seconds={max_seconds:g}: a resumed run repeats it, another run does"
        " not": max_seconds,
    }
    return [f"clock: {line}" for line, is_used in lines.items() if is_used]


def _time_limits(recipe: Recipe) -> Iterator[str]:
    """Every field of a component that is a number of seconds."""
    for part in walk(recipe):
        if is_component(part):
            hints = typing.get_type_hints(type(part), include_extras=True)
            for name in (name for name, hint in hints.items() if "seconds" in describe_range(hint)):
                yield f"{type(part).__name__}.{name}={getattr(part, name):g}"
