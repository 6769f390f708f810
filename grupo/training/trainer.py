"""The one trainer."""

from pathlib import Path
from typing import Any

from grupo.config.validate import check
from grupo.models.base import Policy
from grupo.recipe import Recipe
from grupo.storage import checkpoint
from grupo.storage.checkpoint import NoCheckpoint
from grupo.storage.fault_injection import point
from grupo.storage.lock import Lock
from grupo.training.callbacks import Silent, Watcher
from grupo.training.learner import Learned, Learner
from grupo.training.rollout_records import records
from grupo.training.run_dir import Run, unused
from grupo.training.token_records import traces


def train(recipe: Recipe, run: str | Path = "", watcher: Watcher = Silent()) -> dict[str, Any]:
    """Train as the recipe says; return what `summary.json` holds.

    The folder `run` is a new one; without a name it is one under runs/, called by the time.

    Raises `Refused`, before any work starts, for what cannot be used.
    """
    trainer = begin(recipe, Path(run) if run else unused(), watcher)
    with trainer.lock:
        return trainer()


def resume(run: str | Path, watcher: Watcher = Silent()) -> dict[str, Any]:
    """Go on with a run that was stopped at any moment, by anything: it ends with the same bits."""
    trainer = reopen(Path(run), watcher)
    with trainer.lock:
        trainer.restore()
        return trainer()


def begin(recipe: Recipe, run: Path, watcher: Watcher = Silent()) -> "Trainer":
    """A run about to start in a new folder."""
    check(recipe)
    Run.vacant(run)
    learner = Learner(recipe)
    return Trainer(learner, *Run.create(run, recipe), watcher)


def reopen(run: Path, watcher: Watcher = Silent()) -> "Trainer":
    """A run that was begun before, at its start until `restore` is called."""
    opened = Run.open(run)
    learner = Learner(opened.recipe)
    return Trainer(learner, opened, opened.lock(), watcher)


def policy_of(run: Path) -> tuple[Policy, Recipe]:
    """The policy of a run as its newest whole checkpoint has it."""
    recipe = Run.open(run).recipe
    policy = recipe.policy.build()
    policy.load(checkpoint.load(run / "checkpoints").tensors["weights"])
    return policy, recipe


class Trainer:
    """A run under way: it learns step by step, logs, evaluates and saves."""

    def __init__(self, learner: Learner, run: Run, lock: Lock, watcher: Watcher) -> None:
        self.learner, self.run, self.lock, self.watcher = learner, run, lock, watcher
        self.recipe, self.policy, self.state = learner.recipe, learner.policy, learner.state

    def __call__(self) -> dict[str, Any]:
        """Go on to the end; a run that is finished is only summed up."""
        point("run/begin")
        self.watcher.begun(self.recipe, self.state.step)
        for remark in self.policy.remarks:
            self.watcher.said(remark)
        try:
            if self.state.finished:
                self.watcher.said(f"{self.run.folder} is finished: nothing is left to do.")
            else:
                self._finish()
            summary = self.summary()
            self.run.summarise(summary)
            point("run/ended")
            return summary
        finally:
            self.policy.voice.close()
            self.watcher.ended()

    def restore(self) -> None:
        """Take over the newest whole checkpoint, if the run ever saved one."""
        try:
            found = self.run.load()
        except NoCheckpoint:
            return
        for note in found.notes:
            self.watcher.said(note)
        self.state.restore(found)
        self.state.finished &= not found.notes  # else what is damaged would stay so

    def summary(self) -> dict[str, Any]:
        """What a run came to."""
        return {
            "method": repr(self.recipe.method),
            "model": self.recipe.policy.model,
            "steps": self.state.step,
            "seconds": round(self.state.seconds, 2),
            "tokens": self.state.tokens,
            "ledger": {name: round(x, 3) for name, x in self.state.ledger.items()},
            "failed_rollouts": self.state.failed,
            "held_out": self.state.scores,
        }

    def _finish(self) -> None:
        self._evaluate("before")
        while self.state.step < self.recipe.steps and not self._reached():
            self._step()
        self._evaluate("after")
        self.state.finished = True
        self._save()

    def _step(self) -> None:
        number = self.state.step
        learned = self.learner.step()
        for note in learned.notes:
            self.watcher.said(note)
        every = self.recipe.evaluation.every
        if every and self.state.step % every == 0 and self.state.step < self.recipe.steps:
            self._evaluate(f"step {self.state.step}")
        self._log(number, learned)
        point("step/logged")
        self.watcher.stepped(number, learned.numbers)
        if self.state.step % self.recipe.save_every == 0:
            self._save()
        point("step/saved")

    def _log(self, number: int, learned: Learned) -> None:
        sampled, kept, batch = learned.gathered.sampled, learned.gathered.kept, learned.batch
        some, spell = sampled[: self.recipe.inspected], self.policy.spell
        said = traces(number, some, kept, batch, learned.trace, spell)
        self.run.log(number, learned.numbers, records(number, sampled, kept, batch), said)

    def _evaluate(self, when: str) -> None:
        if self.learner.held_out and when not in self.state.scores:
            self.watcher.evaluated(when, self.learner.evaluate(when))

    def _reached(self) -> bool:
        until, last = self.recipe.until, list(self.state.scores.values())[-1:]
        solved = any(score["sampled"] >= until.sampled for score in last)
        return solved or until.spent(self.state.tokens, self.state.trained) >= 1

    def _save(self) -> None:
        self.run.save(self.state.step, self.state.tensors(), self.state.data())
