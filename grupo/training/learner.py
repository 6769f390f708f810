"""A training step: generate, score, compute advantages, update; without files and displays."""

import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import TypeVar

from grupo.algo.optimizers.averaging import averaged_weights
from grupo.config.staleness import generation_schedule
from grupo.config.success import named_criterion
from grupo.config.supervised import scored_sampler
from grupo.config.validate import env_warnings
from grupo.config.validate_rewards import check_observed_rewards
from grupo.config.validate_tasks import load_tasks, task_notes
from grupo.core.batch import Batch
from grupo.core.schedules import resolve_schedules
from grupo.core.usage import count_usage
from grupo.distributed.base import SINGLE_RANK, Ranks
from grupo.distributed.exchange import (
    broadcast_from_rank_0,
    exchange_json,
    sum_counts,
)
from grupo.distributed.phase import Phase
from grupo.method import Method
from grupo.models.aux_heads import head_parameters
from grupo.recipe import Recipe
from grupo.rollouts.evaluate import EvalResult, evaluate
from grupo.rollouts.history import History
from grupo.rollouts.replay_buffer import ReplayBuffer
from grupo.rollouts.task_history import TaskHistoryStore
from grupo.storage.fault_injection import kill_point
from grupo.storage.segments import Segments, SegmentsInMemory
from grupo.training.collect.async_rollouts import (
    PendingStep,
    StepStart,
    with_importance_correction,
)
from grupo.training.collect.generation import Generation
from grupo.training.collect.groups import CollectedGroups
from grupo.training.collect.tasks import fit_tasks
from grupo.training.ranks import shard_policy, share_servers
from grupo.training.resume.state import State
from grupo.training.resume.step_clock import Clock, MeasuredClock
from grupo.training.stopping import measured_kl
from grupo.training.teacher_forcing import demonstration_scores
from grupo.training.update import metrics
from grupo.training.update.batch import BatchBuilder, must_recompute_old_logp
from grupo.training.update.oom_retry import retry_on_oom
from grupo.training.update.records import Trace
from grupo.training.update.replay import Replayer
from grupo.training.update.updates import Updater
from grupo.util.rng import derive_key, seed_torch
from grupo.util.timing import Stopwatch

Metrics = dict[str, float]
Result = TypeVar("Result")

OPTIMIZER = "optimizer"  # names of optimizers, also of their files in a checkpoint
AUX_HEAD_OPTIMIZER = "aux_head_optimizer"


@dataclass(frozen=True)
class TrainStepResult:
    """The outcome of one training step.

    Args:
        collected: The groups generated and the groups kept.
        batch: The batch collated from the kept groups, with advantages.
        metrics: The metrics of the step, by name.
        trace: Signals of the policy at each action that was trained on; on ranks other than the
            first, of the actions that they trained on.
        notes: Messages for the user, such as OOM retries.
    """

    collected: CollectedGroups
    batch: Batch
    metrics: Metrics
    trace: Trace
    notes: tuple[str, ...] = ()


class Learner:
    """Runs the training steps of a recipe and holds the state that they change.

    Args:
        recipe: Everything that the run chooses.
        ranks: The processes that train together.
        recipe_at: Returns the recipe of the step after a number of steps; it differs from `recipe`
            only if a run was extended. By default it is `recipe`.
        segments: Where the replay buffer keeps its rollouts; by default in memory.
        clock: Counts the seconds of steps.

    Raises:
        ConfigError: The tasks do not fit the policy, the method or the environment.
    """

    def __init__(
        self,
        recipe: Recipe,
        ranks: Ranks = SINGLE_RANK,
        *,
        recipe_at: Callable[[int], Recipe] | None = None,
        segments: Segments | None = None,
        clock: Clock = MeasuredClock(),
    ) -> None:
        self.recipe = recipe
        self.ranks = ranks
        self.recipe_at = recipe_at or (lambda step: recipe)
        tasks = load_tasks(recipe)
        seed_torch(recipe.seed, "build")  # adapters are initialised at random
        self.policy = recipe.policy.build()
        shard_policy(self.policy, ranks)
        (self.tasks, self.eval_tasks), self.task_note = fit_tasks(recipe, self.policy, tasks)
        method = recipe.method
        heads = self.policy.attach_heads(method.requires.heads)
        self.aux_models = self.policy.attach_aux_models(
            method.requires.all_signals, method.reference, recipe.aux_models
        )
        parameters, embeddings = self.policy.parameters(), self.policy.embeddings()
        optimizers = {OPTIMIZER: recipe.optimizer(parameters, embeddings)}
        if method.requires.heads:
            optimizers[AUX_HEAD_OPTIMIZER] = recipe.aux_head_optimizer(head_parameters(heads))
        self.state = State(
            self.policy,
            optimizers,
            self.aux_models,
            self.tasks,
            history=History(
                task_histories=TaskHistoryStore(method.requires.task_folds),
                source_histories=TaskHistoryStore(method.requires.source_folds),
            ),
            replay_buffer=ReplayBuffer(
                method.requires.replay_buffer, segments or SegmentsInMemory()
            ),
            ema_weights=recipe.ema.initial(self.policy.weights()) if recipe.ema else {},
            clock=clock,
        )
        self.rollout_queue = self.state.rollout_queue
        self.generation = Generation(recipe, self.policy, self.tasks, self.rollout_queue, ranks)
        self.stopwatch = Stopwatch()
        self.notes: list[str] = []
        self.steps_ahead = generation_schedule(recipe).steps_ahead
        if self.steps_ahead:
            self.policy.detach_sampler()
        share_servers(self.policy, ranks)

    def step(self) -> TrainStepResult:
        """Collect groups, update the policy on them, and record the step in the state."""
        self.stopwatch = Stopwatch()
        self.notes = []
        recipe = self.recipe
        step = self.state.step
        self.ranks.begin_step(step + 1)
        kill_point("step/begin")
        seed_torch(recipe.seed, "step", step)
        method, learning_rates = self._resolve_schedules()
        pending = self._generate_step(method)
        collected = pending.collected
        self.state.record_collected(pending.tasks_drawn, collected.unfinished_groups)
        check_observed_rewards(method, collected.kept_groups)
        build_batch = self._batch_builder(method)
        batch = build_batch(collected)
        replay_metrics = Metrics()
        if self.state.replay_buffer.capacity:
            replay = Replayer(
                self.state.replay_buffer, build_batch.collate, build_batch.measure, self.ranks
            )
            replayed = replay(method.replay, collected, batch, step, recipe.seed)
            collected, batch, replay_metrics = replayed.collected, replayed.batch, replayed.metrics
        trace = Trace()
        updates = Metrics()
        if collected.kept_groups:
            update = self._updater()
            updates = update(method, batch, learning_rates=learning_rates, step=step, trace=trace)
        values = metrics.group_metrics(collected, batch)
        values |= metrics.token_metrics(pending.generated_tokens, collected, batch) | updates
        values |= replay_metrics
        values |= metrics.time_metrics(self.stopwatch, values) | {"lr": learning_rates[OPTIMIZER]}
        values["staleness"] = metrics.mean_staleness(collected, step)
        values |= metrics.usage_metrics(pending.usage)
        values["microbatch_tokens"] = float(self.policy.tokens_per_microbatch)
        # times differ between ranks, and schedules and controllers may read them
        values = broadcast_from_rank_0(self.ranks, values, Phase.STEP_ENDED)
        kl = measured_kl(self.recipe_at(step).early_stopping, values)
        self.state.record_step(collected.sampled_groups, values, recipe.method, kl)
        kill_point("step/recorded")
        return TrainStepResult(collected, batch, values, trace, tuple(self.notes))

    def evaluate(self, label: str) -> EvalResult:
        """Attempt the evaluation tasks; the scores are recorded in the state under `label`."""
        stopwatch = Stopwatch()
        evaluation = self.recipe.evaluation
        self.rollout_queue.wait_all()  # it generates with the weights that are replaced here
        with averaged_weights(*self.state.optimizers.values()), count_usage() as usage:
            self.policy.sync_weights(self.policy.weight_sync.snapshot(), self.state.step)
            result = evaluate(
                self.policy,
                self.recipe.env,
                self.eval_tasks,
                attempts=evaluation.attempts,
                success=named_criterion(evaluation.success, self.recipe.env),
                turn_strategy=evaluation.turn_strategy,
                key=derive_key(self.recipe.seed, "held-out"),
                ranks=self.ranks,
            )
            if sampler := scored_sampler(self.recipe):
                arguments = self.policy, sampler, self.recipe.env, self.eval_tasks, self.ranks
                result = replace(result, demonstrations=demonstration_scores(*arguments))
            self.policy.weight_sync.release_memory()
        usage = sum_counts(exchange_json(self.ranks, usage, Phase.EVALUATION_ENDED))
        seconds = broadcast_from_rank_0(self.ranks, stopwatch.elapsed, Phase.EVALUATION_ENDED)
        self.state.record_evaluation(label, result, seconds, usage)
        kill_point("run/evaluated")
        return result

    @property
    def warnings(self) -> tuple[str, ...]:
        """Lines about the policy and the tasks that a user may not expect."""
        lines = (
            *self.policy.warnings,
            self.task_note,
            *env_warnings(self.recipe),
            *task_notes(self.recipe, self.tasks, self.eval_tasks),
        )
        return tuple(filter(None, lines))

    def close(self) -> None:
        """Cancel the generation of later steps, then end the processes that generate."""
        is_ended_by_error = sys.exc_info()[0] is not None
        if self.ranks.size > 1 and not is_ended_by_error:
            self.rollout_queue.wait_all()  # the other ranks wait for rollouts of this one
        try:
            self.rollout_queue.close()
        finally:
            self.policy.weight_sync.close()

    def _resolve_schedules(self) -> tuple[Method, Mapping[str, float]]:
        """The method and the learning rates of this step, by the name of the optimizer."""
        state = self.state
        recipe = self.recipe_at(state.step)
        rates = (recipe.learning_rate, recipe.aux_head_learning_rate)
        scheduled = (recipe.method, recipe.stale_correction, *rates)
        progress = recipe.progress(state.step, state.generated_tokens, state.training_seconds)
        method, bound, *rates = resolve_schedules(scheduled, progress, state.history.metrics)
        if recipe.max_staleness:
            method = with_importance_correction(method, bound)
        return method, dict(zip((OPTIMIZER, AUX_HEAD_OPTIMIZER), rates, strict=True))

    def _generate_step(self, method: Method) -> PendingStep:
        """The groups of this step, generated now, or ahead of earlier updates."""
        history = self.state.history
        start = StepStart(history.tasks_drawn, self.state.unfinished_groups)
        step = self.state.step
        if not self.steps_ahead:
            return self.generation.now(method, history, start, step, self.stopwatch)
        end = min(step + self.steps_ahead + 1, self.recipe_at(step).max_steps)
        return self.generation.ahead(method, history, start, range(step, end), self.stopwatch)

    def _batch_builder(self, method: Method) -> BatchBuilder:
        return BatchBuilder(
            method,
            self.policy,
            self.aux_models,
            self.state.history.task_history,
            must_recompute_old_logp(self.recipe, self.state.sampler_mismatch),
            self.ranks,
            self._run_forward_passes,
        )

    def _run_forward_passes(self, compute: Callable[[], Batch]) -> Batch:
        with self.stopwatch.lap("logprobs"):
            return self._retry_on_oom(compute)

    def _retry_on_oom(self, fn: Callable[[], Result]) -> Result:
        """Retry `fn` in smaller micro-batches; gradients of a failed attempt are cleared."""
        optimizers = self.state.optimizers.values()

        def zero_grad() -> None:
            for optimizer in optimizers:
                optimizer.zero_grad()

        return retry_on_oom(fn, self.policy, zero_grad, self.notes.append)

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
