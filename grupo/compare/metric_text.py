"""Measurements of a comparison as text: values, intervals, probabilities."""

import math

from grupo.util.statistics import Interval

FRACTION_METRICS = ("sampled", "greedy", "nonzero_std_frac")


def format_metric(metric: str, value: float) -> str:
    """The value of a metric as text.

    >>> format_metric("sampled", 0.4321), format_metric("tokens", 12345.6)
    ('43.2 %', '12,346')
    >>> format_metric("reward", float("nan"))
    'NaN'
    """
    if math.isnan(value):
        return "NaN"
    if metric in FRACTION_METRICS:
        return f"{100 * value:.1f} %"
    digits = {"reward": 3, "seconds": int(abs(value) < 100)}.get(metric, 0)
    return f"{value:,.{digits}f}"


def format_interval(metric: str, interval: Interval, sign: str = "") -> str:
    """A mean with its interval; "-" for a mean over nothing, no interval for a single run.

    Args:
        metric: a key of `METRICS`.
        interval: the mean and its interval.
        sign: "+" to show the sign of positive values, for differences.
    """
    if math.isnan(interval.value):
        return "-"
    value, low, high = (_format_without_unit(metric, x, sign) for x in vars(interval).values())
    bounds = "" if math.isnan(interval.low) else f" [{low}, {high}]"
    unit = " points" if sign else " %"
    return value + bounds + unit * (metric in FRACTION_METRICS)


def format_probability(p: float) -> str:
    """A p value as text.

    >>> format_probability(0.25), format_probability(0.00004), format_probability(float("nan"))
    ('0.250', '<0.001', '-')
    """
    return "-" if math.isnan(p) else "<0.001" if p < 0.001 else f"{p:.3f}"


def format_plain_interval(interval: Interval) -> str:
    """A probability or an effect size with its interval; "-" if there is none.

    >>> format_plain_interval(Interval(0.5, 0.25, 1.0)), format_plain_interval(Interval())
    ('0.50 [0.25, 1.00]', '-')
    """
    if math.isnan(interval.value):
        return "-"
    has_bounds = not math.isnan(interval.low)
    bounds = f" [{interval.low:.2f}, {interval.high:.2f}]" if has_bounds else ""
    return f"{interval.value:.2f}{bounds}"


def _format_without_unit(metric: str, value: float, sign: str) -> str:
    """A value without its unit; `sign` is put before values without a minus."""
    return sign * (value >= 0) + format_metric(metric, value).removesuffix(" %")
