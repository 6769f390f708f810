"""Medians and bootstrap intervals of repeated pairs of steps."""

import random
from collections.abc import Sequence
from statistics import mean, median
from typing import Any

Measurements = dict[str, Any]
BOOTSTRAP_SAMPLES = 2000


def summarize_pairs(
    steps: Sequence[tuple[Measurements, Measurements]], grupo: Measurements, trl: Measurements
) -> Measurements:
    """Medians of both libraries, and the median ratio of TRL's seconds to grupo's.

    Args:
        steps: pairs of measurements of a step, of grupo and of TRL.
        grupo, trl: the measurements after loading.

    Returns:
        `ratio` with the bounds `low` and `high` of a 95 % bootstrap interval over pairs, and in
        `steps` the seconds of every step with the number of cores busy with other processes.
    """
    ratios = [trl_step["seconds"] / grupo_step["seconds"] for grupo_step, trl_step in steps]
    low, high = median_interval(ratios)
    return {
        "ratio": median(ratios),
        "low": low,
        "high": high,
        "pairs": len(steps),
        "ours": _library_summary([grupo_step for grupo_step, _ in steps], grupo),
        "peer": _library_summary([trl_step for _, trl_step in steps], trl),
        "steps": [[[x["seconds"], x["others"]] for x in pair] for pair in steps],
    }


def median_interval(values: Sequence[float]) -> tuple[float, float]:
    """The 95 % bootstrap interval of the median."""
    rng = random.Random(0)
    medians = sorted(median(rng.choices(values, k=len(values))) for _ in range(BOOTSTRAP_SAMPLES))
    return medians[BOOTSTRAP_SAMPLES // 40], medians[-1 - BOOTSTRAP_SAMPLES // 40]


def _library_summary(steps: Sequence[Measurements], startup: Measurements) -> Measurements:
    """Median times, mean token counts, and bytes of memory at the peak and before any step."""
    medians = {
        name: median(step[name] for step in steps) for name in ("seconds", "sample", "update")
    }
    means = {name: mean(step[name] for step in steps) for name in ("tokens", "signal", "others")}
    return (
        medians
        | means
        | {"peak": steps[-1]["peak"], "before": startup["peak"], **startup["environment"]}
    )
