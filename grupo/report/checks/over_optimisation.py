"""Check of over-optimised likelihoods: probability leaks from the likeliest tokens."""

from collections.abc import Iterator, Sequence
from itertools import pairwise

from grupo.core.paper import Paper, Source
from grupo.report.checks.finding import Finding, FindingTemplate, format_steps, step_locations
from grupo.report.checks.run_data import RunData

EVALUATIONS = 3

OVER_OPTIMISED = FindingTemplate(
    "over-optimised",
    "warning",
    (
        "Likelihoods or margins are pushed beyond what the data supports: unlikely tokens gain.",
        "`learning_rate` is too high, or the run is too long for its data.",
    ),
    (
        "Use an earlier checkpoint: compare the held-out scores.",
        "Use a larger `kl_coef` or beta, or fewer steps.",
    ),
)


def fall_together(
    entropy: Sequence[float], mass: Sequence[float], evaluations: int = EVALUATIONS
) -> bool:
    """True if both fell at each of the last evaluations.

    Args:
        entropy: Entropy of the likeliest tokens at each evaluation.
        mass: Their probability at each evaluation.
        evaluations: Number of last evaluations that are compared.

    >>> fall_together([1, 0.9, 0.8], [0.99, 0.97, 0.95])
    True
    >>> fall_together([1, 0.9, 0.8], [0.95, 0.96, 0.97])
    False
    """
    last = entropy[-evaluations:], mass[-evaluations:]
    return all(
        len(values) == evaluations and all(a > b for a, b in pairwise(values)) for values in last
    )


def over_optimised(run: RunData) -> Iterator[Finding]:
    """Entropy and probability of the likeliest tokens fell over the last three windows."""
    names = ("policy/entropy_top10", "policy/mass_top10")
    series = [run(name) for name in names]
    if min(len(x.values) for x in series) < EVALUATIONS * run.window:
        return
    entropy, mass = (_window_means(x.values, run.window) for x in series)
    if fall_together(entropy, mass):
        steps = series[0].last(EVALUATIONS * run.window).steps
        yield OVER_OPTIMISED(
            f"At {format_steps(steps)}, the entropy of the 10 likeliest tokens fell from"
            f" {entropy[0]:.3g} to {entropy[-1]:.3g} nats and their probability from"
            f" {mass[0]:.3g} to {mass[-1]:.3g}.",
            locations=step_locations(steps[-1:]),
        )


def _window_means(values: Sequence[float], window: int) -> list[float]:
    """Means of the last windows, the earliest first."""
    recent = values[-EVALUATIONS * window :]
    chunks = (recent[i : i + window] for i in range(0, len(recent), window))
    return [sum(chunk) / window for chunk in chunks]


PAPER = Paper(
    title="Understanding Likelihood Over-optimisation in Direct Alignment Algorithms",
    use="A run on preferences must stop before the likelihood costs quality.",
    tags=("preferences", "entropy"),
    kind="evaluation",
    catalogue=("likelihood-overoptimisation",),
    checked=("golden", "run"),
    source=Source("abstract", "arXiv:2410.11677, abstract; formulas from the catalogue's row"),
    deviations=(
        "k = 10 and three evaluations are our choice; an evaluation is a window of steps.",
        "The distributions are those of the trained rollouts: on given answers they are not the "
        "policy's own generations.",
    ),
    shown=(
        "tests/report/test_over_optimisation.py::test_alarms_of_long_and_short_preference_runs",
        "docs/small_claims.md#likelihoods-that-go-too-far",
    ),
)
