"""The one trainer."""

from pathlib import Path
from typing import Any

from grupo.config.validate import check_recipe
from grupo.models.base import Policy
from grupo.recipe import Recipe
from grupo.storage import checkpoint
from grupo.storage.checkpoint import NoCheckpoint
from grupo.storage.fault_injection import kill_point
from grupo.storage.lock import Lock
from grupo.training.callbacks import Callback, NullCallback
from grupo.training.learner import Learner, TrainStepResult
from grupo.training.rollout_records import rollout_records
from grupo.training.run_dir import RunFolder, unused_folder
from grupo.training.token_records import token_records


def train(
    recipe: Recipe, run: str | Path = "", callback: Callback = NullCallback()
) -> dict[str, Any]:
    """Train as the recipe says; return what `summary.json` holds.

    The folder `run` is a new one; without a name it is one under runs/, called by the time.

    Raises `ConfigError`, before any work starts, for what cannot be used.
    """
    trainer = create_trainer(recipe, Path(run) if run else unused_folder(), callback)
    with trainer.lock:
        return trainer()


def resume(run: str | Path, callback: Callback = NullCallback()) -> dict[str, Any]:
    """Go on with a run that was stopped at any moment, by anything: it ends with the same bits."""
    trainer = reopen_trainer(Path(run), callback)
    with trainer.lock:
        trainer.restore()
        return trainer()


def create_trainer(recipe: Recipe, run: Path, callback: Callback = NullCallback()) -> "Trainer":
    """A run about to start in a new folder."""
    check_recipe(recipe)
    RunFolder.check_empty(run)
    learner = Learner(recipe)
    return Trainer(learner, *RunFolder.create(run, recipe), callback)


def reopen_trainer(run: Path, callback: Callback = NullCallback()) -> "Trainer":
    """A run that was begun before, at its start until `restore` is called."""
    opened = RunFolder.open(run)
    learner = Learner(opened.recipe)
    return Trainer(learner, opened, opened.lock(), callback)


def load_policy(run: Path) -> tuple[Policy, Recipe]:
    """The policy of a run as its newest whole checkpoint has it."""
    recipe = RunFolder.open(run).recipe
    policy = recipe.policy.build()
    policy.load(checkpoint.load(run / "checkpoints").tensors["weights"])
    return policy, recipe


class Trainer:
    """A run under way: it learns step by step, logs, evaluates and saves."""

    def __init__(self, learner: Learner, run: RunFolder, lock: Lock, callback: Callback) -> None:
        self.learner, self.run, self.lock, self.callback = learner, run, lock, callback
        self.recipe, self.policy, self.state = learner.recipe, learner.policy, learner.state

    def __call__(self) -> dict[str, Any]:
        """Go on to the end; a run that is finished is only summed up."""
        kill_point("run/begin")
        self.callback.on_train_begin(self.recipe, self.state.step)
        for remark in self.policy.warnings:
            self.callback.on_message(remark)
        try:
            if self.state.finished:
                self.callback.on_message(f"{self.run.folder} is finished: nothing is left to do.")
            else:
                self._finish()
            summary = self.summary()
            self.run.write_summary(summary)
            kill_point("run/ended")
            return summary
        finally:
            self.policy.weight_sync.close()
            self.callback.on_train_end()

    def restore(self) -> None:
        """Take over the newest whole checkpoint, if the run ever saved one."""
        try:
            found = self.run.load()
        except NoCheckpoint:
            return
        for note in found.notes:
            self.callback.on_message(note)
        self.state.restore(found)
        self.state.finished &= not found.notes  # else what is damaged would stay so

    def summary(self) -> dict[str, Any]:
        """What a run came to."""
        return {
            "method": repr(self.recipe.method),
            "model": self.recipe.policy.model,
            "steps": self.state.step,
            "seconds": round(self.state.seconds, 2),
            "tokens": self.state.generated_tokens,
            "ledger": {name: round(x, 3) for name, x in self.state.ledger.items()},
            "failed_rollouts": self.state.failed_rollouts,
            "held_out": self.state.eval_scores,
        }

    def _finish(self) -> None:
        self._evaluate("before")
        while self.state.step < self.recipe.max_steps and not self._should_stop():
            self._step()
        self._evaluate("after")
        self.state.finished = True
        self._save()

    def _step(self) -> None:
        number = self.state.step
        learned = self.learner.step()
        for note in learned.notes:
            self.callback.on_message(note)
        every = self.recipe.evaluation.every
        if every and self.state.step % every == 0 and self.state.step < self.recipe.max_steps:
            self._evaluate(f"step {self.state.step}")
        self._log(number, learned)
        kill_point("step/logged")
        self.callback.on_step_end(number, learned.metrics)
        if self.state.step % self.recipe.save_every == 0:
            self._save()
        kill_point("step/saved")

    def _log(self, number: int, learned: TrainStepResult) -> None:
        sampled, kept, batch = (
            learned.collected.sampled_groups,
            learned.collected.kept_groups,
            learned.batch,
        )
        some, spell = sampled[: self.recipe.logged_groups], self.policy.tokens_as_text
        said = token_records(number, some, kept, batch, learned.trace, spell)
        self.run.log(number, learned.metrics, rollout_records(number, sampled, kept, batch), said)

    def _evaluate(self, when: str) -> None:
        if self.learner.eval_tasks and when not in self.state.eval_scores:
            self.callback.on_evaluate(when, self.learner.evaluate(when))

    def _should_stop(self) -> bool:
        until, last = self.recipe.early_stopping, list(self.state.eval_scores.values())[-1:]
        solved = any(score["sampled"] >= until.min_solve_rate for score in last)
        return (
            solved
            or until.used_fraction(self.state.generated_tokens, self.state.training_seconds) >= 1
        )

    def _save(self) -> None:
        self.run.save(self.state.step, self.state.tensors(), self.state.data())
