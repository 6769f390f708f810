"""What repeated pairs of steps say: medians, and how sure they are."""

import random
from collections.abc import Sequence
from statistics import mean, median
from typing import Any

Measurements = dict[str, Any]
BOOTSTRAP_SAMPLES = 2000


def summarize_pairs(
    steps: Sequence[tuple[Measurements, Measurements]], ours: Measurements, peer: Measurements
) -> Measurements:
    """Medians of both, and the ratio of their seconds; `ours`, `peer`: what they said once loaded.

    The ratio is the median over pairs of the peer's seconds by ours, `low` and `high` the 95 %
    interval of a bootstrap over pairs. `steps` are the seconds of every pair, and how many cores
    worked for others meanwhile.
    """
    ratios = [theirs["seconds"] / own["seconds"] for own, theirs in steps]
    low, high = median_interval(ratios)
    return {
        "ratio": median(ratios),
        "low": low,
        "high": high,
        "pairs": len(steps),
        "ours": _library_summary([own for own, _ in steps], ours),
        "peer": _library_summary([theirs for _, theirs in steps], peer),
        "steps": [[[x["seconds"], x["others"]] for x in pair] for pair in steps],
    }


def median_interval(values: Sequence[float]) -> tuple[float, float]:
    """The 95 % interval of the median, by drawing the values again with replacement."""
    rng = random.Random(0)
    medians = sorted(median(rng.choices(values, k=len(values))) for _ in range(BOOTSTRAP_SAMPLES))
    return medians[BOOTSTRAP_SAMPLES // 40], medians[-1 - BOOTSTRAP_SAMPLES // 40]


def _library_summary(steps: Sequence[Measurements], startup: Measurements) -> Measurements:
    """Seconds a step and their parts; means; bytes at the peak, and before any step."""
    medians = {
        name: median(step[name] for step in steps) for name in ("seconds", "sample", "update")
    }
    means = {name: mean(step[name] for step in steps) for name in ("tokens", "signal", "others")}
    return medians | means | {"peak": steps[-1]["peak"], "before": startup["peak"], **startup["is"]}
