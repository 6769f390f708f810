"""The trainer: runs the steps of a recipe, and logs, evaluates and saves between them."""

from contextlib import AbstractContextManager, ExitStack, suppress
from typing import Any

from grupo.distributed.agreement import check_same_weights
from grupo.distributed.exchange import (
    convert_to_rank_lost_error,
    exchange_json,
)
from grupo.distributed.phase import Phase
from grupo.distributed.rank_report import RANK_REPORT_FILE
from grupo.recipe import Recipe
from grupo.rollouts.eval_scores import step_label
from grupo.rollouts.replay_buffer import remove_unreferenced_segments
from grupo.storage.checkpoint import CorruptRun, NoCheckpoint, explain_disk_errors
from grupo.storage.checkpoint_dirs import newest_first
from grupo.storage.fault_injection import kill_point
from grupo.training.callbacks import Callback, NullCallback
from grupo.training.collect.failed_rollouts import check_any_scored, first_error
from grupo.training.learner import Learner, TrainStepResult
from grupo.training.resume.checkpoint_data import WRONG_DATA_ERRORS
from grupo.training.resume.resumable import (
    not_resumable_message,
    release_loaded_models,
)
from grupo.training.resume.run_folder import RunFolder
from grupo.training.resume.saved_state import restore_state, state_data, state_tensors
from grupo.training.stopping import best_steps_to_keep, run_summary, stop_reason
from grupo.training.update.records import response_records, rollout_records
from grupo.util.errors import ConfigError
from grupo.util.run_files import CHECKPOINTS_FOLDER


class Trainer:
    """Runs training to its end: steps, logs, evaluations and checkpoints.

    A run is extended when it is resumed with a changed recipe, such as a larger `max_steps`.

    Args:
        learner: Runs the steps.
        run_folder: The folder of the run.
        lock: The lock of the run folder. The trainer only stores the lock; the caller holds it by
            `with trainer.lock`. A rank that only reads the folder gets `nullcontext()` instead.
        callback: Receives the events of the run.
    """

    def __init__(
        self,
        learner: Learner,
        run_folder: RunFolder,
        lock: AbstractContextManager[Any],
        callback: Callback,
    ) -> None:
        self.learner = learner
        self.run_folder = run_folder
        self.lock = lock
        self.callback = callback if learner.ranks.rank == 0 else NullCallback()
        # The newest recipe. A run that resumes from a checkpoint before an extension repeats steps.
        # A repeated step uses the recipe of its first time, `stored_recipe.recipe_of_step(step)`.
        self.recipe = learner.recipe
        self.stored_recipe = run_folder.stored_recipe
        self.policy = learner.policy
        self.state = learner.state
        self.has_reported_error = False
        self.ranks = learner.ranks  # `ranks.rank` is this process; rank 0 writes the files
        # With several ranks, rank 0 writes the phase of each rank into this file. With one rank,
        # `start_rank_report` deletes the file, which an earlier start may have left.
        with explain_disk_errors("The run is not started"):
            self.ranks.start_rank_report(run_folder.folder / RANK_REPORT_FILE)

    def __call__(self) -> dict[str, Any]:
        """Train to the end and return the summary; a finished run is not trained further."""
        kill_point("run/begin")
        self.callback.on_train_begin(self.recipe, self.state.step)
        messages = (not_resumable_message(self.recipe), *self.learner.start_messages)
        for message in filter(None, messages):
            self.callback.on_message(message)
        try:
            if self.state.finished:
                folder = self.run_folder.folder
                self.callback.on_message(f"{folder} is finished: nothing is left to do.")
            else:
                self._train_to_end()
            summary = self.summary()
            self.run_folder.write_summary(summary)
            kill_point("run/ended")
            return summary
        finally:
            with ExitStack() as cleanup:
                cleanup.callback(self.callback.on_train_end)
                # ends this run's claim on models that the caller passed as objects
                cleanup.callback(release_loaded_models, self.recipe)
                self.learner.close()

    def restore(self) -> None:
        """Restore the newest complete checkpoint, if the run has one.

        Rank 0 restores first. It also cuts the run's journals (files with a line for each step or
        rollout) after the step of the checkpoint. The other ranks wait until then, because
        loading a checkpoint reads the journals.
        """
        if self.ranks.rank:
            exchange_json(self.ranks, None, Phase.CHECKPOINT_RESTORED)  # waits for rank 0
        with suppress(NoCheckpoint):
            self._restore_checkpoint()
        self._remove_old_segments()
        self.state.step_durations.load()
        if damage_message := self.state.step_durations.damage_message:
            self.callback.on_message(damage_message)
        if not self.ranks.rank:
            exchange_json(self.ranks, None, Phase.CHECKPOINT_RESTORED)  # the others go on

    def _restore_checkpoint(self) -> None:
        with explain_disk_errors("The run is not resumed"):
            checkpoint = self.run_folder.load()
        for message in checkpoint.skipped_checkpoints:
            self.callback.on_message(message)
        try:
            restore_state(self.state, checkpoint)
        except ConfigError:
            raise
        except WRONG_DATA_ERRORS as error:
            raise CorruptRun(
                f"run: the checkpoint of step {checkpoint.step} cannot be restored: {error!r:.200}."
                " Its files were changed: put back a copy, or start a new run."
            ) from error
        if checkpoint.data["fingerprint"] != self.stored_recipe.fingerprint:
            self.state.begin_extension()  # the checkpoint is from before the run was extended

    def summary(self) -> dict[str, Any]:
        """Return the contents of `summary.json`."""
        return run_summary(self.recipe, self.state.step, state_data(self.state))

    def _train_to_end(self) -> None:
        self._evaluate("before")
        while not (reason := self._stop_reason()):
            self._step()
        if self.state.step < self.recipe.max_steps:
            self.callback.on_message(f"Training ends at step {self.state.step}: {reason}.")
        self._evaluate("after")
        self.state.finish(reason)
        self._save()

    def _step(self) -> None:
        with convert_to_rank_lost_error(self.ranks):
            result = self.learner.step()
        step = self.state.step  # the number of this step, from 1; its index is one less
        for message in result.messages:
            self.callback.on_message(message)
        if self._must_evaluate(self.stored_recipe.recipe_of_step(step - 1)):
            self._evaluate(step_label(step))
        self._log(step, result)
        kill_point("step/logged")
        self.callback.on_step_end(step, result.metrics)
        groups = result.collected.sampled_groups
        if self.recipe.on_unscored == "stop":
            check_any_scored(step, groups)
        self._report_error(first_error(groups))
        if step % self.recipe.save_every == 0 or step in self._best_steps():
            self._save()
        kill_point("step/saved")

    def _report_error(self, error: str) -> None:
        """Report the first error that left a rollout without a score; ignore later errors."""
        if error and not self.has_reported_error:
            self.has_reported_error = True
            self.callback.on_message(f"A rollout could not be scored: {error}")

    def _log(self, step: int, result: TrainStepResult) -> None:
        if not self.run_folder.is_writer:
            return  # `log` would write nothing, and building the records is slow
        sampled = result.collected.sampled_groups
        kept = result.collected.kept_groups
        num_logged = self.stored_recipe.recipe_of_step(step - 1).logged_groups
        self.run_folder.log(
            step,
            result.metrics,
            rollout_records(step, sampled, kept, result.batch),
            response_records(
                step,
                sampled[:num_logged],
                kept,
                result.batch,
                result.action_signals,
                self.policy.tokens_as_text,
            ),
        )

    def _evaluate(self, label: str) -> None:
        if self.learner.eval_tasks and label not in self.state.eval_scores:
            result = self.learner.evaluate(label)
            self.callback.on_evaluate(label, result)
            # An error before training usually occurs again in the first step, which reports it.
            if self.state.step:
                self._report_error(result.first_error)

    def _must_evaluate(self, recipe: Recipe) -> bool:
        """Whether the policy is evaluated now, after a step with this recipe.

        Also at a step at which the run had ended before it was extended: the final evaluation was
        made there, and a repetition of the step evaluates again.
        """
        step = self.state.step
        every = recipe.evaluation.every
        is_due = bool(every) and step % every == 0 and step < recipe.max_steps
        return is_due or any(
            earlier.run_had_ended and earlier.replaced_at_step == step
            for earlier in self.stored_recipe.earlier_recipes
        )

    def _stop_reason(self) -> str:
        if self.state.step < self.stored_recipe.last_extended_at_step:
            return ""  # a repeated step; the run went on after it, and does so again
        return stop_reason(self.recipe, self.state.stop_inputs())

    def _best_steps(self) -> list[int]:
        """The steps whose checkpoints are kept because of their evaluation scores."""
        return best_steps_to_keep(self.recipe, self.state.step, self.state.eval_scores)

    def _save(self) -> None:
        check_same_weights(self.ranks, self.policy.replicated_weights())
        with explain_disk_errors(f"Step {self.state.step} is not saved"):
            self.state.replay_buffer.segments.fsync()
        tensors, data = state_tensors(self.state), state_data(self.state)
        with convert_to_rank_lost_error(self.ranks):
            self.run_folder.save(self.state.step, tensors, data, self._best_steps())
        self._remove_old_segments()

    def _remove_old_segments(self) -> None:
        """Remove the files of the replay buffer that no checkpoint needs."""
        if self.state.replay_buffer.capacity and self.run_folder.is_writer:
            with explain_disk_errors("An older part of the replay buffer is not removed"):
                checkpoints = newest_first(self.run_folder.folder / CHECKPOINTS_FOLDER)
                remove_unreferenced_segments(self.run_folder.folder, checkpoints)
