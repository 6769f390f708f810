"""What a comparison will cost, said beforehand."""

import math
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from grupo.compare.budget import Budget, Spent, share
from grupo.compare.experiment import Cell
from grupo.compare.run_status import CRASHED, FINISHED, TO_DO, Outcome, look
from grupo.compare.scheduler import Audience, Machine, Nobody, train_all
from grupo.compare.update_budget import paces
from grupo.report.read_run import metrics, summary
from grupo.report.step_line import clock

TRIED = 2  # steps of a trial; the first may load and compile


@dataclass(frozen=True)
class Cost:
    """What one run takes: seconds of it all, steps and tokens of training, bytes on disk."""

    seconds: float
    steps: float
    tokens: float
    bytes: float


@dataclass(frozen=True)
class Plan:
    """The cells that are left, what each recipe costs, and how many run side by side."""

    outcomes: Sequence[Outcome]
    costs: Mapping[tuple[str, str], Cost]  # by recipe and task set
    machine: Machine
    failed: Mapping[tuple[str, str], str]  # what trials came to that did not end

    @property
    def left(self) -> list[Cell]:
        """What is still to be trained."""
        return [outcome.cell for outcome in self.outcomes if outcome.status in TO_DO]

    def total(self, what: str) -> float:
        """The sum over all cells that are left; NaN while one is unknown."""
        costs = [self.costs.get((cell.name, cell.task_set)) for cell in self.left]
        return sum(getattr(cost, what) if cost else math.nan for cost in costs)

    def lines(self) -> list[str]:
        """The plan in words."""
        done = [o for o in self.outcomes if o.status == FINISHED]
        crashed = [o for o in self.outcomes if o.status == CRASHED]
        others = len(self.outcomes) - len(done) - len(crashed) - len(self.left)
        seconds, beside = self.total("seconds"), min(self.machine.workers, max(1, len(self.left)))
        return [
            f"{len(self.outcomes)} cells: {len(done)} finished, {len(crashed)} crashed,"
            f" {others} otherwise, {len(self.left)} to be trained",
            paces({outcome.cell.name: outcome.cell.recipe for outcome in self.outcomes}),
            f"steps: {_about(self.total('steps'))}; tokens: {_about(self.total('tokens'))}",
            f"time: {_clock(seconds)} of work, {_clock(seconds / beside)} with {beside} cells side"
            f" by side, {self.machine.threads} threads each",
            f"disk: {_about(self.total('bytes') / 1e6)} MB",
            *(f"{name}: its trial failed: {why}" for (name, _), why in self.failed.items()),
        ]


def plan(
    outcomes: Sequence[Outcome], budget: Budget, machine: Machine, audience: Audience = Nobody()
) -> Plan:
    """From finished runs of each recipe, or else from a trial of two steps each."""
    left = [outcome.cell for outcome in outcomes if outcome.status in TO_DO]
    costs = {_key(o.cell): _measured(o) for o in outcomes if o.status == FINISHED}
    untried = {_key(cell): cell for cell in left if _key(cell) not in costs}
    with tempfile.TemporaryDirectory(prefix="grupo-plan-") as folder:
        trials = [_trial(cell, Path(folder) / str(i)) for i, cell in enumerate(untried.values())]
        train_all(trials, machine, audience)
        ended = [look(trial) for trial in trials]
        costs |= {_key(o.cell): _scaled(o, budget) for o in ended if o.status == FINISHED}
        failed = {_key(o.cell): o.why for o in ended if o.status != FINISHED}
    return Plan(outcomes, costs, machine, failed)


def _key(cell: Cell) -> tuple[str, str]:
    return cell.name, cell.task_set


def _trial(cell: Cell, folder: Path) -> Cell:
    """The first steps of a cell, as it takes them; it saves after the last."""
    return replace(cell, recipe=cell.recipe.but(steps=TRIED, save_every=1), folder=folder)


def _measured(outcome: Outcome) -> Cost:
    spent = float(summary(outcome.cell.folder)["seconds"])
    return Cost(spent, outcome["steps"], outcome["tokens"], _size(outcome.cell.folder))


def _scaled(outcome: Outcome, budget: Budget) -> Cost:
    """What a whole run costs if all its steps are as the last one of the trial."""
    folder = outcome.cell.folder
    last = metrics(folder)[-1]
    one = Spent(1, last["tokens/sampled"], last["time/step"])
    steps = max(1, math.ceil(1 / share(budget, one)))
    besides = float(summary(folder)["seconds"]) - outcome["seconds"]  # evaluating
    every = outcome.cell.recipe.evaluation.every
    times = 1 + (steps - 1) // every / 2 if every else 1  # a trial evaluates twice
    journals = _size(folder) - _size(folder / "checkpoints")
    size = _size(folder / "checkpoints") + journals * steps / TRIED
    return Cost(steps * one.seconds + times * besides, steps, steps * one.tokens, size)


def _size(folder: Path) -> float:
    return float(sum(path.stat().st_size for path in folder.rglob("*") if path.is_file()))


def _about(value: float) -> str:
    return "unknown" if math.isnan(value) else f"about {value:,.0f}"


def _clock(seconds: float) -> str:
    return "unknown" if math.isnan(seconds) else f"about {clock(seconds)}"
