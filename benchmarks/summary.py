"""What repeated pairs of steps say: medians, and how sure they are."""

import random
from collections.abc import Sequence
from statistics import mean, median
from typing import Any

Said = dict[str, Any]
DRAWS = 2000


def summary(steps: Sequence[tuple[Said, Said]], ours: Said, peer: Said) -> Said:
    """Medians of both, and the ratio of their seconds; `ours`, `peer`: what they said once loaded.

    The ratio is the median over pairs of the peer's seconds by ours, `low` and `high` the 95 %
    interval of a bootstrap over pairs. `steps` are the seconds of every pair, and how many cores
    worked for others meanwhile.
    """
    ratios = [theirs["seconds"] / own["seconds"] for own, theirs in steps]
    low, high = interval(ratios)
    return {
        "ratio": median(ratios),
        "low": low,
        "high": high,
        "pairs": len(steps),
        "ours": _side([own for own, _ in steps], ours),
        "peer": _side([theirs for _, theirs in steps], peer),
        "steps": [[[x["seconds"], x["others"]] for x in pair] for pair in steps],
    }


def interval(values: Sequence[float]) -> tuple[float, float]:
    """The 95 % interval of the median, by drawing the values again with replacement."""
    rng = random.Random(0)
    medians = sorted(median(rng.choices(values, k=len(values))) for _ in range(DRAWS))
    return medians[DRAWS // 40], medians[-1 - DRAWS // 40]


def _side(steps: Sequence[Said], born: Said) -> Said:
    """Seconds a step and their parts; means; bytes at the peak, and before any step."""
    medians = {
        name: median(step[name] for step in steps) for name in ("seconds", "sample", "update")
    }
    means = {name: mean(step[name] for step in steps) for name in ("tokens", "signal", "others")}
    return medians | means | {"peak": steps[-1]["peak"], "before": born["peak"], **born["is"]}
