"""A Markdown table of arms that were trained with the same seeds, against one of them."""

from collections.abc import Mapping, Sequence
from statistics import fmean

from grupo.compare.table_formats import markdown
from grupo.util.statistics import Interval, student_t_mean

Runs = Mapping[str, Sequence[Mapping[str, float]]]  # metrics of each arm by seed


def paired_table(runs: Runs, metrics: Sequence[str], baseline: str) -> str:
    """Means of metrics by arm, and the paired differences to the baseline with 95 % intervals.

    Args:
        runs: Metrics of each arm by seed; all arms have the same seeds, at least 2.
        metrics: The metrics to show.
        baseline: The arm that others are compared with.

    >>> runs = {"a": [{"x": 1.0}, {"x": 2.0}], "b": [{"x": 2.0}, {"x": 3.0}]}
    >>> print(paired_table(runs, ["x"], "a"))
    | arm | `x` | difference |
    | --- | --- | --- |
    | a | 1.5 |  |
    | b | 2.5 | +1 [+1, +1] |
    """
    header = ["arm", *(cell for name in metrics for cell in (f"`{name}`", "difference"))]
    rows = [
        [arm, *(cell for name in metrics for cell in _cells(runs, name, arm, baseline))]
        for arm in runs
    ]
    return markdown([header, *rows]).rstrip()


def _cells(runs: Runs, metric: str, arm: str, baseline: str) -> tuple[str, str]:
    values = [run[metric] for run in runs[arm]]
    mean = f"{fmean(values):.3g}"
    if arm == baseline:
        return mean, ""
    others = [run[metric] for run in runs[baseline]]
    return mean, signed(student_t_mean([a - b for a, b in zip(values, others, strict=True)]))


def signed(interval: Interval) -> str:
    """A difference with its interval.

    >>> signed(Interval(0.5, -0.25, 1.25))
    '+0.5 [-0.25, +1.25]'
    """
    return f"{interval.value:+.3g} [{interval.low:+.3g}, {interval.high:+.3g}]"
