"""Pairs of runs of a sequential comparison, and which runs are still needed."""

import math
from collections.abc import Callable, Sequence
from dataclasses import replace
from statistics import fmean

from grupo.compare.experiment import Comparison, RunSpec
from grupo.compare.run_status import NOT_NEEDED, RUNNING, UNFINISHED, RunStatus
from grupo.compare.sequential_design import CONTINUE

PairDifference = Callable[[RunStatus, RunStatus], float]
PENDING = (*UNFINISHED, RUNNING)


def differences_by_seed(
    comparison: Comparison,
    run_statuses: Sequence[RunStatus],
    name: str,
    difference: PairDifference | None = None,
) -> list[float]:
    """Differences of a recipe to the baseline, one per seed, in the order of the seeds.

    The list ends before the first seed with a run that may still finish, so that it does not depend
    on the order in which runs end. Seeds with a run that crashed, or whose metric is NaN, are left
    out. Several task sets are averaged.

    Args:
        comparison: the comparison.
        run_statuses: every run with its status.
        name: the recipe.
        difference: of a run and the baseline's run; default: of the comparison's metric.
    """
    difference = difference or metric_difference(comparison.metric)
    statuses = {_key(run.run_spec): run for run in run_statuses}
    differences = []
    for seed in comparison.seed_values:
        pairs = [
            [statuses[arm, task_set, seed] for arm in (name, comparison.baseline_name)]
            for task_set in comparison.task_set_names
        ]
        if any(run.status in PENDING for pair in pairs for run in pair):
            break
        mean = fmean(difference(own, baseline) for own, baseline in pairs)
        differences += [mean] * math.isfinite(mean)
    return differences


def metric_difference(metric: str) -> PairDifference:
    """The difference of a metric of two runs."""
    return lambda own, baseline: own[metric] - baseline[metric]


def undecided_recipes(comparison: Comparison, run_statuses: Sequence[RunStatus]) -> list[str]:
    """The recipes that need more pairs, and the baseline as long as there is one."""
    names = [*comparison.arm_names, *comparison.control_names]
    if not (design := comparison.design):
        return [comparison.baseline_name, *names]
    shared = design.shared_by(len(comparison.arm_names))
    designs = dict.fromkeys(names, design) | dict.fromkeys(comparison.arm_names, shared)
    undecided = [
        name
        for name, design in designs.items()
        if design.verdict(differences_by_seed(comparison, run_statuses, name))[0] == CONTINUE
    ]
    return [*undecided, *[comparison.baseline_name] * bool(undecided or not names)]


def mark_unneeded(comparison: Comparison, run_statuses: Sequence[RunStatus]) -> list[RunStatus]:
    """The statuses, in which runs that are not started because a verdict was reached are marked."""
    undecided = undecided_recipes(comparison, run_statuses)
    return [
        replace(run, status=NOT_NEEDED)
        if run.status in UNFINISHED and run.run_spec.name not in undecided
        else run
        for run in run_statuses
    ]


class NeededRuns:
    """Whether a run is needed, given all runs that have ended.

    Args:
        comparison: the comparison.
        run_statuses: the initial status of every run.
    """

    def __init__(self, comparison: Comparison, run_statuses: Sequence[RunStatus]) -> None:
        self.comparison = comparison
        self.statuses = {_key(run.run_spec): run for run in run_statuses}
        self.undecided = undecided_recipes(comparison, run_statuses)

    def is_needed(self, run_spec: RunSpec) -> bool:
        """True if no verdict on the recipe of the run has been reached."""
        return run_spec.name in self.undecided

    def on_run_end(self, run_status: RunStatus) -> None:
        self.statuses[_key(run_status.run_spec)] = run_status
        self.undecided = undecided_recipes(self.comparison, list(self.statuses.values()))


def _key(run_spec: RunSpec) -> tuple[str, str, int]:
    return run_spec.name, run_spec.task_set, run_spec.seed
