"""Estimates of the time, tokens and disk space that a comparison will need."""

import math
import tempfile
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from grupo.compare.budget import Budget, Usage, used_fraction
from grupo.compare.experiment import RunSpec
from grupo.compare.run_status import CRASHED, FINISHED, UNFINISHED, RunStatus, status_of
from grupo.compare.scheduler import NullQueueCallback, QueueCallback, Resources, train_all
from grupo.compare.update_budget import describe_all_updates
from grupo.report.read_run import read_metrics, read_summary
from grupo.report.step_line import format_duration
from grupo.util.run_files import CHECKPOINTS_FOLDER

TRIAL_STEPS = 2  # the first step may load and compile


@dataclass(frozen=True)
class RunCost:
    """The cost of one run: seconds in total, steps and tokens of training, bytes on disk."""

    seconds: float
    steps: float
    tokens: float
    disk_bytes: float


@dataclass(frozen=True)
class CostEstimate:
    """The estimated cost of the remaining runs of a comparison.

    Args:
        run_statuses: every run with its status.
        costs: the cost of one run, by recipe and task set.
        resources: how many runs train in parallel.
        trial_errors: why trials failed, by recipe and task set.
    """

    run_statuses: Sequence[RunStatus]
    costs: Mapping[tuple[str, str], RunCost]
    resources: Resources
    trial_errors: Mapping[tuple[str, str], str]

    @property
    def has_unknown_costs(self) -> bool:
        """True if no finished run and no trial tells the cost of a remaining run."""
        keys = set(map(_cost_key, self.remaining_runs))
        return bool(keys - self.costs.keys() - self.trial_errors.keys())

    @property
    def remaining_runs(self) -> list[RunSpec]:
        """The runs that are not finished."""
        return [run.run_spec for run in self.run_statuses if run.status in UNFINISHED]

    def total(self, quantity: str) -> float:
        """The sum of a field of `RunCost` over the remaining runs; NaN if one is unknown."""
        costs = [self.costs.get(_cost_key(run)) for run in self.remaining_runs]
        return sum(getattr(cost, quantity) if cost else math.nan for cost in costs)

    def lines(self) -> list[str]:
        """The estimate as lines of text."""
        counts = Counter(run.status for run in self.run_statuses)
        remaining = len(self.remaining_runs)
        others = len(self.run_statuses) - counts[FINISHED] - counts[CRASHED] - remaining
        recipes = {run.run_spec.name: run.run_spec.recipe for run in self.run_statuses}
        seconds = self.total("seconds")
        workers = min(self.resources.workers, max(1, remaining))
        errors = (f"{name}: its trial failed: {e}" for (name, _), e in self.trial_errors.items())
        return [
            f"{len(self.run_statuses)} runs: {counts[FINISHED]} finished,"
            f" {counts[CRASHED]} crashed, {others} other, {remaining} to train",
            describe_all_updates(recipes),
            f"steps: {_about(self.total('steps'))}; tokens: {_about(self.total('tokens'))}",
            f"time: {_clock(seconds)} in total, {_clock(seconds / workers)} with {workers} parallel"
            f" runs, {self.resources.threads} threads each",
            f"disk: {_about(self.total('disk_bytes') / 1e6)} MB",
            *errors,
            *["Nothing was measured yet: `--trial` trains two steps of each method."]
            * self.has_unknown_costs,
        ]


def estimate_from_finished_runs(
    run_statuses: Sequence[RunStatus], resources: Resources
) -> CostEstimate:
    """Estimate the cost from a finished run of each recipe; nothing is trained.

    Args:
        run_statuses: every run of the comparison.
        resources: how many runs train in parallel.
    """
    return CostEstimate(run_statuses, _costs_of_finished(run_statuses), resources, {})


def _costs_of_finished(run_statuses: Sequence[RunStatus]) -> dict[tuple[str, str], RunCost]:
    finished = [run for run in run_statuses if run.status == FINISHED]
    return {_cost_key(run.run_spec): _actual_cost(run) for run in finished}


def estimate_from_trials(
    run_statuses: Sequence[RunStatus],
    budget: Budget,
    resources: Resources,
    queue_callback: QueueCallback = NullQueueCallback(),
) -> CostEstimate:
    """Estimate the cost from a finished run of each recipe, or from a trial of two steps.

    Args:
        run_statuses: every run of the comparison.
        budget: the budget of each run.
        resources: how many runs train in parallel.
        queue_callback: is notified of the trials.
    """
    remaining = [run.run_spec for run in run_statuses if run.status in UNFINISHED]
    costs = _costs_of_finished(run_statuses)
    unknown = {_cost_key(run): run for run in remaining if _cost_key(run) not in costs}
    errors: dict[tuple[str, str], str] = {}
    with tempfile.TemporaryDirectory(prefix="grupo-estimate-") as folder:
        trials = [_trial_run(run, Path(folder) / str(i)) for i, run in enumerate(unknown.values())]
        train_all(trials, resources, queue_callback)
        for trial in map(status_of, trials):
            key = _cost_key(trial.run_spec)
            if trial.status == FINISHED:
                costs[key] = _extrapolated_cost(trial, budget)
            else:
                errors[key] = trial.reason
    return CostEstimate(run_statuses, costs, resources, errors)


def _cost_key(run_spec: RunSpec) -> tuple[str, str]:
    return run_spec.name, run_spec.task_set


def _trial_run(run_spec: RunSpec, folder: Path) -> RunSpec:
    """The first `TRIAL_STEPS` steps of a run, with a checkpoint after each."""
    recipe = run_spec.recipe.replace(max_steps=TRIAL_STEPS, save_every=1)
    return replace(run_spec, recipe=recipe, folder=folder)


def _actual_cost(run_status: RunStatus) -> RunCost:
    folder = run_status.run_spec.folder
    seconds = float(read_summary(folder)["seconds"])
    return RunCost(seconds, run_status["steps"], run_status["tokens"], _size(folder))


def _extrapolated_cost(run_status: RunStatus, budget: Budget) -> RunCost:
    """The cost of a whole run if every step is like the last step of the trial."""
    folder = run_status.run_spec.folder
    last = read_metrics(folder)[-1]
    updates = run_status.run_spec.recipe.updates_per_step
    step = Usage(1, last["tokens/generated"], last["time/step"], updates)
    steps = max(1, math.ceil(1 / used_fraction(budget, step)))
    eval_seconds = float(read_summary(folder)["seconds"]) - run_status["seconds"]
    every = run_status.run_spec.recipe.evaluation.every
    eval_factor = 1 + (steps - 1) // every / 2 if every else 1  # a trial evaluates twice
    journals = _size(folder) - _size(folder / CHECKPOINTS_FOLDER)
    size = _size(folder / CHECKPOINTS_FOLDER) + journals * steps / TRIAL_STEPS
    seconds = steps * step.seconds + eval_factor * eval_seconds
    return RunCost(seconds, steps, steps * step.tokens, size)


def _size(folder: Path) -> float:
    return float(sum(path.stat().st_size for path in folder.rglob("*") if path.is_file()))


def _about(value: float) -> str:
    return "unknown" if math.isnan(value) else f"about {value:,.0f}"


def _clock(seconds: float) -> str:
    return "unknown" if math.isnan(seconds) else f"about {format_duration(seconds)}"
