"""The learner: runs training steps in memory, without writing files or displaying anything."""

import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TypeVar

from grupo.algo.optimizers.averaging import use_averaged_weights
from grupo.config.staleness import staleness_limits
from grupo.config.validate import env_warnings
from grupo.config.validate_rewards import check_rewards_in_range
from grupo.config.validate_tasks import load_tasks, select_usable_tasks, task_notes
from grupo.core.batch import Batch
from grupo.core.schedules import resolve_schedules
from grupo.core.usage import count_external_usage
from grupo.distributed.base import SINGLE_RANK, Ranks
from grupo.distributed.exchange import broadcast_from_rank_0, exchange_json, sum_counts
from grupo.distributed.phase import Phase
from grupo.envs.reward_function_check import check_reward_functions
from grupo.method import Method
from grupo.models.prompt_warnings import prompt_warnings
from grupo.recipe import Recipe
from grupo.rollouts.eval_result import EvalResult
from grupo.storage.fault_injection import kill_point
from grupo.storage.segments import Segments, SegmentsInMemory
from grupo.training.collect.async_rollouts import (
    GeneratedStep,
    GenerationState,
    with_stale_correction,
)
from grupo.training.collect.collected_groups import CollectedGroups
from grupo.training.collect.generation import StepGenerator
from grupo.training.evaluation import evaluate_held_out
from grupo.training.ranks import shard_policy, use_same_inference_servers
from grupo.training.resume.state import AUX_HEAD_OPTIMIZER, POLICY_OPTIMIZER, initial_state
from grupo.training.resume.step_durations import StepDurations, UnrecordedDurations
from grupo.training.stopping import kl_for_early_stopping
from grupo.training.update import metrics
from grupo.training.update.batch import BatchBuilder, must_recompute_old_logp
from grupo.training.update.oom_retry import retry_on_oom
from grupo.training.update.records import ActionSignals
from grupo.training.update.replay import Replayer
from grupo.training.update.updates import Updater
from grupo.util.rng import seed_torch
from grupo.util.timing import Stopwatch

Metrics = dict[str, float]
Result = TypeVar("Result")


@dataclass(frozen=True)
class TrainStepResult:
    """The outcome of one training step.

    Args:
        collected: The generated groups and the kept groups.
        batch: The batch collated from the kept groups, with advantages.
        metrics: The metrics of the step, by name.
        action_signals: Signals of the policy at each action that the step trained on. Rank 0 has
            the signals of all ranks. Another rank has only the signals of its own actions.
        messages: Lines for the user, such as about an OOM retry.
    """

    collected: CollectedGroups
    batch: Batch
    metrics: Metrics
    action_signals: ActionSignals
    messages: tuple[str, ...] = ()


class Learner:
    """Runs the training steps of a recipe and holds the state that they change.

    `recipe.method` has schedules and controllers. Each step replaces them by numbers, in the
    resolved method, with which it generates and updates.

    Args:
        recipe: Everything that the run chooses.
        ranks: The processes that train together.
        recipe_of_step: Returns the recipe of a step, by its index from 0; by default `recipe`.
            A run can be resumed with another recipe, and may then repeat steps of the earlier
            recipe. For such a step, the function returns the earlier recipe. The learner reads only
            its learning rates, the progress of its schedules, `max_steps` and `early_stopping`. All
            other fields are those of `recipe`, because a resume is refused if one of them has
            changed in a way that alters results.
        segments: The storage for the rollouts of the replay buffer; by default memory.
        step_durations: The seconds of each step. A step that is repeated after a resume keeps the
            seconds of its first execution, so that schedules and the end of the run stay the same.

    Raises:
        ConfigError: The tasks do not fit the policy, the method or the environment. Raised at
            construction.
    """

    def __init__(
        self,
        recipe: Recipe,
        ranks: Ranks = SINGLE_RANK,
        *,
        recipe_of_step: Callable[[int], Recipe] | None = None,
        segments: Segments | None = None,
        step_durations: StepDurations = UnrecordedDurations(),
    ) -> None:
        self.recipe = recipe
        self.ranks = ranks
        self.recipe_of_step = recipe_of_step or (lambda step: recipe)
        tasks = load_tasks(recipe)
        seed_torch(recipe.seed, "build")  # adapters are initialised at random
        self.policy = recipe.policy.build()
        shard_policy(self.policy, ranks)
        (self.tasks, self.eval_tasks), self.unusable_tasks_message = select_usable_tasks(
            recipe, self.policy, tasks
        )
        self.trial_messages = ()
        # the checks need a policy that generates text; an image policy has no chat tokenizer
        if hasattr(self.policy, "chat_tokenizer"):
            self.trial_messages = (
                *check_reward_functions(recipe.env, self.tasks[0]),
                *prompt_warnings(self.policy.chat_tokenizer, self.tasks),
            )
        self.state = initial_state(
            recipe, self.policy, self.tasks, segments or SegmentsInMemory(), step_durations
        )
        self.aux_models = self.state.aux_models
        self.rollout_queue = self.state.rollout_queue
        self.step_generator = StepGenerator(
            recipe, self.policy, self.tasks, self.rollout_queue, ranks
        )
        self.stopwatch = Stopwatch()
        self.step_messages: list[str] = []
        # the number of steps by which generation runs ahead of the updates
        self.steps_ahead = staleness_limits(recipe).steps_ahead
        if self.steps_ahead:
            self.policy.use_weight_copy_for_generation()
        use_same_inference_servers(self.policy, ranks)

    def step(self) -> TrainStepResult:
        """Generate and score groups, compute advantages, update the policy, and record the step."""
        self.stopwatch = Stopwatch()
        self.step_messages = []
        recipe = self.recipe
        step = self.state.step
        self.ranks.begin_step(step + 1)
        kill_point("step/begin")
        seed_torch(recipe.seed, "step", step)
        resolved_method, learning_rates = self._resolve_schedules()
        generated_step = self._generate_step(resolved_method)
        collected = generated_step.collected
        self.state.record_collected(generated_step.num_tasks_drawn, collected.unfinished_groups)
        check_rewards_in_range(resolved_method, collected.kept_groups)
        builder = self._batch_builder(resolved_method)
        batch = builder(collected)
        replay_metrics = Metrics()
        if (buffer := self.state.replay_buffer).capacity:
            replayer = Replayer(buffer, builder.collate, builder.add_method_signals, self.ranks)
            replayed = replayer(resolved_method.replay, collected, batch, step, recipe.seed)
            collected, batch, replay_metrics = replayed.collected, replayed.batch, replayed.metrics
        signals = ActionSignals()  # the updater fills it
        update_metrics = Metrics()
        if collected.kept_groups:
            update = self._updater()
            update_metrics = update(
                resolved_method,
                batch,
                learning_rates=learning_rates,
                step=step,
                action_signals=signals,
            )
        step_metrics = metrics.group_metrics(collected, batch)
        step_metrics |= metrics.token_metrics(
            generated_step.generated_tokens, collected, batch, signals
        )
        step_metrics |= update_metrics | replay_metrics
        step_metrics |= metrics.time_metrics(self.stopwatch, step_metrics)
        step_metrics["lr"] = learning_rates[POLICY_OPTIMIZER]
        step_metrics["staleness"] = metrics.mean_staleness(collected, step)
        step_metrics |= metrics.usage_metrics(generated_step.external_usage)
        step_metrics["microbatch_tokens"] = float(self.policy.tokens_per_microbatch)
        # times differ between ranks, and schedules and controllers may read them
        step_metrics = broadcast_from_rank_0(self.ranks, step_metrics, Phase.STEP_ENDED)
        early_stopping = self.recipe_of_step(step).early_stopping
        early_stopping_kl = kl_for_early_stopping(early_stopping, step_metrics)
        # not the resolved method, which has no controllers: the history keeps what they read
        self.state.record_step(
            collected.sampled_groups, step_metrics, recipe.method, early_stopping_kl
        )
        step_metrics |= self.state.archive_metrics(recipe.method)
        kill_point("step/recorded")
        return TrainStepResult(collected, batch, step_metrics, signals, tuple(self.step_messages))

    def evaluate(self, label: str) -> EvalResult:
        """Attempt the evaluation tasks, and record the scores in the state under `label`."""
        stopwatch = Stopwatch()
        # first finish the rollouts that are generated ahead: the engine gets other weights
        self.rollout_queue.wait_all()
        # Evaluate at the averaged weights if an optimizer averages weights. The moving average of
        # `recipe.ema` is only saved in checkpoints.
        optimizers = self.state.optimizers.values()
        with use_averaged_weights(*optimizers), count_external_usage() as usage_of_rank:
            self.policy.sync_weights(self.policy.weight_sync.snapshot(), self.state.step)
            result = evaluate_held_out(self.recipe, self.policy, self.eval_tasks, self.ranks)
            self.policy.weight_sync.release_memory()  # of the inference engine
        usage_by_rank = exchange_json(self.ranks, usage_of_rank, Phase.EVALUATION_ENDED)
        seconds = broadcast_from_rank_0(self.ranks, stopwatch.elapsed, Phase.EVALUATION_ENDED)
        self.state.record_evaluation(label, result, seconds, sum_counts(usage_by_rank))
        kill_point("run/evaluated")
        return result

    @property
    def start_messages(self) -> tuple[str, ...]:
        """Warnings about the policy, the tasks and the environment, one line each."""
        lines = (
            *self.policy.warnings,
            self.unusable_tasks_message,
            *self.trial_messages,
            *env_warnings(self.recipe),
            *task_notes(self.recipe, self.tasks, self.eval_tasks),
        )
        return tuple(filter(None, lines))

    def close(self) -> None:
        """Cancel the generation of queued steps and end the weight sync."""
        # With several ranks, a rank that cancelled now would leave the others waiting in the
        # exchange of rollouts. Unless there was an error, all first finish the queued steps.
        is_ended_by_error = sys.exc_info()[0] is not None
        if self.ranks.size > 1 and not is_ended_by_error:
            self.rollout_queue.wait_all()
        try:
            self.rollout_queue.close()
        finally:
            self.policy.weight_sync.close()

    def _resolve_schedules(self) -> tuple[Method, Mapping[str, float]]:
        """Return the resolved method of this step and the learning rate of each optimizer.

        In a resolved method, a number is in the place of each schedule and each controller.
        """
        state = self.state
        recipe = self.recipe_of_step(state.step)
        rates = (recipe.learning_rate, recipe.aux_head_learning_rate)
        unresolved = (recipe.method, recipe.stale_correction, *rates)
        used = (state.generated_tokens, state.training_seconds, state.executions)
        progress = recipe.progress(state.step, *used)
        resolved = resolve_schedules(unresolved, progress, state.history.metrics)
        resolved_method, stale_correction, *rates = resolved
        if recipe.max_staleness:
            resolved_method = with_stale_correction(resolved_method, stale_correction)
        return resolved_method, dict(
            zip((POLICY_OPTIMIZER, AUX_HEAD_OPTIMIZER), rates, strict=True)
        )

    def _generate_step(self, resolved_method: Method) -> GeneratedStep:
        """Return the groups of this step, generated now or during the updates of earlier steps."""
        history = self.state.history
        generation_state = GenerationState(history.num_tasks_drawn, self.state.unfinished_groups)
        generator, step = self.step_generator, self.state.step
        if not self.steps_ahead:
            return generator.generate_now(
                resolved_method, history, generation_state, step, self.stopwatch
            )
        end_step = min(step + self.steps_ahead + 1, self.recipe_of_step(step).max_steps)
        return generator.take_generated_step(
            resolved_method, history, generation_state, range(step, end_step), self.stopwatch
        )

    def _batch_builder(self, resolved_method: Method) -> BatchBuilder:
        return BatchBuilder(
            resolved_method,
            self.policy,
            self.aux_models,
            self.state.history.statistics_of_task,
            must_recompute_old_logp(self.recipe, self.state.sampler_logp_diff),
            self.ranks,
            self._run_forward_passes,
        )

    def _run_forward_passes(self, compute: Callable[[], Batch]) -> Batch:
        with self.stopwatch.lap("logprobs"):
            return self._retry_on_oom(compute)

    def _retry_on_oom(self, fn: Callable[[], Result]) -> Result:
        """Call `fn`, and call it again with smaller micro-batches if memory runs out."""

        def zero_grad() -> None:  # clears the gradients of a failed call
            for optimizer in self.state.optimizers.values():
                optimizer.zero_grad()

        return retry_on_oom(fn, self.policy, zero_grad, self.step_messages.append)

    def _updater(self) -> Updater:
        return Updater(
            self.recipe,
            self.policy,
            self.state.optimizers,
            self.state.ema_weights,
            self.ranks,
            self.stopwatch,
            self._retry_on_oom,
        )
