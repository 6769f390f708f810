"""A step in one line, and what of it cannot wait."""

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass

Metrics = Mapping[str, float]

# A ratio of 1.05 before any update is a quarter of what PPO clips at: no rounding of bfloat16.
MISMATCH = 0.05
_OWN = frozenset({"reward/mean", "reward/std"})


@dataclass(frozen=True)
class Fact:
    """A metric as the line of a step shows it."""

    name: str
    label: str
    show: Callable[[float], str]


def percent(value: float) -> str:
    """A share in percent.

    >>> percent(0.125)
    '12%'
    """
    return f"{100 * value:.0f}%" if math.isfinite(value) else "-"


def number(value: float) -> str:
    """A number in three digits.

    >>> number(0.33054), number(7458.4), number(9e-8)
    ('0.331', '7458', '9e-08')
    """
    return f"{value:.0f}" if abs(value) >= 1000 else f"{value:.3g}"


FACTS = (
    Fact("groups/signal", "signal", percent),
    Fact("length/mean", "length", number),
    Fact("rollouts/truncated", "cut off", percent),
    Fact("entropy", "entropy", number),
    Fact("kl/ref", "kl/ref", number),
    Fact("mismatch/mean", "mismatch", number),
    Fact("gradient/norm", "gradient", number),
    Fact("share/sample", "sampling", percent),
    Fact("share/update", "updating", percent),
    Fact("speed/step", "tokens/s", number),
)


def facts(metrics: Metrics) -> list[str]:
    """What is worth reading of a step; what was not measured is left out."""
    shown = [
        f"{fact.label} {fact.show(metrics[fact.name])}" for fact in FACTS if fact.name in metrics
    ]
    return [_reward(metrics), *shown]


def _reward(metrics: Metrics) -> str:
    parts = {n: v for n, v in metrics.items() if n.startswith("reward/") and n not in _OWN}
    inside = ", ".join(f"{n.removeprefix('reward/')} {number(v)}" for n, v in parts.items())
    return f"reward {number(metrics.get('reward/mean', math.nan))}" + f" ({inside})" * bool(parts)


def clock(seconds: float) -> str:
    """Seconds as hours, minutes and seconds.

    >>> clock(3725.2), clock(59.6)
    ('1:02:05', '1:00')
    """
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02}:{rest:02}" if hours else f"{minutes}:{rest:02}"


def _failed(metrics: Metrics) -> str:
    count = metrics.get("rollouts/failed", 0.0)
    return f"{count:.0f} rollouts could not be judged and were left out." if count else ""


def _nonfinite(metrics: Metrics) -> str:
    bad = metrics.get("gradient/nonfinite", 0.0) > 0
    return "The gradient is not finite; that update was left out." if bad else ""


def _mismatch(metrics: Metrics) -> str:
    mean = metrics.get("mismatch/mean", 0.0)
    return (
        f"Sampler and trainer disagree: log-probabilities differ by {number(mean)} on average."
        if mean > MISMATCH
        else ""
    )


def _nothing(metrics: Metrics) -> str:
    learned = metrics.get("groups/learned", 1.0)
    return "" if learned else "No group was learned from: this step changed nothing."


def _no_signal(metrics: Metrics) -> str:
    flat = metrics.get("groups/signal", 1.0) == 0
    return "In no group do the rewards differ: there is nothing to compare." if flat else ""


ALARMS = (_failed, _nonfinite, _mismatch, _nothing, _no_signal)


def alarms(metrics: Metrics) -> dict[str, str]:
    """What matters at once, by the name of the alarm."""
    said = {alarm.__name__.strip("_"): alarm(metrics) for alarm in ALARMS}
    return {name: text for name, text in said.items() if text}
