"""What a comparison will cost, said beforehand."""

import math
import tempfile
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

TRIAL_STEPS = 2  # steps of a trial; the first may load and compile


@dataclass(frozen=True)
class RunCost:
    """What one run takes: seconds of it all, steps and tokens of training, bytes on disk."""

    seconds: float
    steps: float
    tokens: float
    disk_bytes: float


@dataclass(frozen=True)
class CostEstimate:
    """The cells that are left, what each recipe costs, and how many run side by side."""

    run_statuses: Sequence[RunStatus]
    costs: Mapping[tuple[str, str], RunCost]  # by recipe and task set
    resources: Resources
    trial_errors: Mapping[tuple[str, str], str]  # what trials came to that did not end

    @property
    def remaining_runs(self) -> list[RunSpec]:
        """What is still to be trained."""
        return [outcome.run_spec for outcome in self.run_statuses if outcome.status in UNFINISHED]

    def total(self, quantity: str) -> float:
        """The sum over all cells that are left; NaN while one is unknown."""
        costs = [self.costs.get((cell.name, cell.task_set)) for cell in self.remaining_runs]
        return sum(getattr(cost, quantity) if cost else math.nan for cost in costs)

    def lines(self) -> list[str]:
        """The plan in words."""
        done = [o for o in self.run_statuses if o.status == FINISHED]
        crashed = [o for o in self.run_statuses if o.status == CRASHED]
        others = len(self.run_statuses) - len(done) - len(crashed) - len(self.remaining_runs)
        seconds, beside = (
            self.total("seconds"),
            min(self.resources.workers, max(1, len(self.remaining_runs))),
        )
        return [
            f"{len(self.run_statuses)} cells: {len(done)} finished, {len(crashed)} crashed,"
            f" {others} otherwise, {len(self.remaining_runs)} to be trained",
            describe_all_updates(
                {outcome.run_spec.name: outcome.run_spec.recipe for outcome in self.run_statuses}
            ),
            f"steps: {_about(self.total('steps'))}; tokens: {_about(self.total('tokens'))}",
            f"time: {_clock(seconds)} of work, {_clock(seconds / beside)} with {beside} cells side"
            f" by side, {self.resources.threads} threads each",
            f"disk: {_about(self.total('disk_bytes') / 1e6)} MB",
            *(f"{name}: its trial failed: {why}" for (name, _), why in self.trial_errors.items()),
        ]


def estimate_from_trials(
    run_statuses: Sequence[RunStatus],
    budget: Budget,
    resources: Resources,
    queue_callback: QueueCallback = NullQueueCallback(),
) -> CostEstimate:
    """From finished runs of each recipe, or else from a trial of two steps each."""
    left = [outcome.run_spec for outcome in run_statuses if outcome.status in UNFINISHED]
    costs = {_cost_key(o.run_spec): _actual_cost(o) for o in run_statuses if o.status == FINISHED}
    untried = {_cost_key(cell): cell for cell in left if _cost_key(cell) not in costs}
    with tempfile.TemporaryDirectory(prefix="grupo-plan-") as folder:
        trials = [
            _trial_run(cell, Path(folder) / str(i)) for i, cell in enumerate(untried.values())
        ]
        train_all(trials, resources, queue_callback)
        ended = [status_of(trial) for trial in trials]
        costs |= {
            _cost_key(o.run_spec): _extrapolated_cost(o, budget)
            for o in ended
            if o.status == FINISHED
        }
        failed = {_cost_key(o.run_spec): o.reason for o in ended if o.status != FINISHED}
    return CostEstimate(run_statuses, costs, resources, failed)


def _cost_key(run_spec: RunSpec) -> tuple[str, str]:
    return run_spec.name, run_spec.task_set


def _trial_run(run_spec: RunSpec, folder: Path) -> RunSpec:
    """The first steps of a cell, as it takes them; it saves after the last."""
    return replace(
        run_spec, recipe=run_spec.recipe.replace(max_steps=TRIAL_STEPS, save_every=1), folder=folder
    )


def _actual_cost(run_status: RunStatus) -> RunCost:
    spent = float(read_summary(run_status.run_spec.folder)["seconds"])
    return RunCost(
        spent, run_status["steps"], run_status["tokens"], _size(run_status.run_spec.folder)
    )


def _extrapolated_cost(run_status: RunStatus, budget: Budget) -> RunCost:
    """What a whole run costs if all its steps are as the last one of the trial."""
    folder = run_status.run_spec.folder
    last = read_metrics(folder)[-1]
    one = Usage(1, last["tokens/generated"], last["time/step"])
    steps = max(1, math.ceil(1 / used_fraction(budget, one)))
    besides = float(read_summary(folder)["seconds"]) - run_status["seconds"]  # evaluating
    every = run_status.run_spec.recipe.evaluation.every
    times = 1 + (steps - 1) // every / 2 if every else 1  # a trial evaluates twice
    journals = _size(folder) - _size(folder / "checkpoints")
    size = _size(folder / "checkpoints") + journals * steps / TRIAL_STEPS
    return RunCost(steps * one.seconds + times * besides, steps, steps * one.tokens, size)


def _size(folder: Path) -> float:
    return float(sum(path.stat().st_size for path in folder.rglob("*") if path.is_file()))


def _about(value: float) -> str:
    return "unknown" if math.isnan(value) else f"about {value:,.0f}"


def _clock(seconds: float) -> str:
    return "unknown" if math.isnan(seconds) else f"about {format_duration(seconds)}"
