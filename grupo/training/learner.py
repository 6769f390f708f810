"""A training step: generate, score, compute advantages, update; without files and displays."""

import sys
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future
from dataclasses import dataclass, replace
from functools import partial
from typing import TypeVar

import torch
from torch import Tensor

from grupo.algo.optimizers.averaging import averaged_weights, optimizer_parameters
from grupo.algo.optimizers.update import optimizer_step
from grupo.config.staleness import generation_schedule
from grupo.config.success import named_criterion
from grupo.config.supervised import column_sampler, length_limit, scored_sampler
from grupo.config.validate import check_tasks, env_warnings
from grupo.config.validate_rewards import check_observed_rewards
from grupo.config.validate_tasks import check_first_observation, load_tasks, task_notes
from grupo.core.batch import EMPTY_BATCH, Batch
from grupo.core.dtypes import logp_rounding
from grupo.core.schedules import resolve_schedules
from grupo.core.types import Task
from grupo.core.usage import count_usage
from grupo.distributed.base import SINGLE_RANK, Ranks
from grupo.distributed.exchange import (
    broadcast_from_rank_0,
    collect_json,
    exchange_json,
    sum_counts,
    sum_gradients,
)
from grupo.method import Method
from grupo.models.aux_heads import head_parameters
from grupo.recipe import Recipe
from grupo.rollouts.evaluate import EvalResult, evaluate
from grupo.storage.fault_injection import kill_point
from grupo.tasks.overlong import fit_prompts
from grupo.training.collect.async_rollouts import (
    GenerateStep,
    PendingStep,
    StepStart,
    with_importance_correction,
)
from grupo.training.collect.groups import CollectedGroups
from grupo.training.collect.step_generator import make_step_generator
from grupo.training.ranks import shard_policy, share_servers
from grupo.training.records import Trace
from grupo.training.resume.state import State
from grupo.training.stopping import measured_kl
from grupo.training.teacher_forcing import demonstration_scores
from grupo.training.update import metrics
from grupo.training.update.collate import collate
from grupo.training.update.gradients import accumulate_gradients, add_signals, evaluate_all
from grupo.training.update.oom_retry import retry_on_oom
from grupo.training.update.replay import Replayer
from grupo.util.rng import derive_key, make_rng, seed_torch
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

    Raises:
        ConfigError: The tasks do not fit the policy, the method or the environment.
    """

    def __init__(self, recipe: Recipe, ranks: Ranks = SINGLE_RANK) -> None:
        self.recipe = recipe
        self.ranks = ranks
        # the recipe of each step; it differs only if a run was extended with another one
        self.recipe_at: Callable[[int], Recipe] = lambda step: recipe
        self.tasks: Sequence[Task]
        self.tasks, self.eval_tasks = load_tasks(recipe)
        seed_torch(recipe.seed, "build")  # adapters are initialised at random
        self.policy = recipe.policy.build()
        shard_policy(self.policy, ranks)
        self.task_note = self._fit_prompts()
        self._check_tasks()
        method = recipe.method
        heads = self.policy.attach_heads(method.requires.heads)
        self.aux_models = self.policy.attach_aux_models(
            method.requires.all_signals, method.reference, recipe.aux_models
        )
        parameters, embeddings = self.policy.parameters(), self.policy.embeddings()
        optimizers = {OPTIMIZER: recipe.optimizer(parameters, embeddings)}
        if method.requires.heads:
            optimizers[AUX_HEAD_OPTIMIZER] = recipe.aux_head_optimizer(head_parameters(heads))
        folds = method.requires.task_folds, method.requires.source_folds
        self.state = State(self.policy, optimizers, self.aux_models, self.tasks, *folds)
        self.state.replay_buffer.capacity = method.requires.replay_buffer
        if recipe.ema:
            self.state.ema_weights = recipe.ema.initial(self.policy.weights())
        self.rollout_queue = self.state.rollout_queue
        self.stopwatch = Stopwatch()
        self.notes: list[str] = []
        self.steps_ahead = generation_schedule(recipe).steps_ahead
        if self.steps_ahead:
            self.policy.detach_sampler()
        share_servers(self.policy, ranks)

    def _fit_prompts(self) -> str:
        """Refuse, drop or truncate prompts that are too long; return a message for the user."""
        limit = length_limit(self.recipe.method, self.policy.prompt_limit)
        if limit is None:
            return ""
        sources, note = fit_prompts(self.recipe.overlong, limit, self.tasks, self.eval_tasks)
        self.tasks, self.eval_tasks = sources
        return note

    def _check_tasks(self) -> None:
        """Raise `ConfigError` for tasks that the policy cannot answer, or learn from."""
        if not column_sampler(self.recipe.method):
            check_tasks(self.policy, self.eval_tasks, self.tasks)
            check_first_observation(self.policy, self.recipe.env, self.tasks)
        elif self.recipe.evaluation.attempts:
            check_tasks(self.policy, self.eval_tasks)

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
        pending = self._next_async_step(method) if self.steps_ahead else self._generate_step(method)
        self.state.history.tasks_drawn = pending.tasks_drawn
        self.state.unfinished_groups = pending.collected.unfinished_groups
        collected = pending.collected
        check_observed_rewards(method, collected.kept_groups)
        batch = self._build_batch(method, collected)
        replay_metrics = Metrics()
        if self.state.replay_buffer.capacity:
            replayed = self._replayer(method)(method.replay, collected, batch, step, recipe.seed)
            collected, batch, replay_metrics = replayed.collected, replayed.batch, replayed.metrics
        trace = Trace()
        updates = Metrics()
        if collected.kept_groups:
            updates = self._run_updates(method, batch, learning_rates, trace)
        values = metrics.group_metrics(collected, batch)
        values |= metrics.token_metrics(pending.generated_tokens, collected, batch) | updates
        values |= replay_metrics
        values |= metrics.time_metrics(self.stopwatch, values) | {"lr": learning_rates[OPTIMIZER]}
        values["staleness"] = metrics.mean_staleness(collected, step)
        values |= metrics.usage_metrics(pending.usage)
        values["microbatch_tokens"] = float(self.policy.tokens_per_microbatch)
        # times differ between ranks, and schedules and controllers may read them
        values = broadcast_from_rank_0(self.ranks, values, f"step {step + 1} ended")
        self.state.record_step(collected.sampled_groups, values, recipe.method)
        self.state.kl = measured_kl(self.recipe_at(step).early_stopping, values)
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
        usage = sum_counts(exchange_json(self.ranks, usage, f"evaluation {label}"))
        seconds = broadcast_from_rank_0(self.ranks, stopwatch.elapsed, f"evaluation {label}")
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
        scheduled = (recipe.method, recipe.learning_rate, recipe.aux_head_learning_rate)
        progress = recipe.progress(state.step, state.generated_tokens, state.training_seconds)
        method, *rates = resolve_schedules(scheduled, progress, state.history.metrics)
        if recipe.max_staleness:
            method = with_importance_correction(method)
        return method, dict(zip((OPTIMIZER, AUX_HEAD_OPTIMIZER), rates, strict=True))

    def _generate_step(self, method: Method) -> PendingStep:
        generated_before = self.policy.generation_seconds
        with self.stopwatch.lap("score"):
            generate_step = self._make_step_generator(method, self.state.step)
            pending = generate_step(self._step_start, Future())
            self.policy.weight_sync.release_memory()
        # rewards are computed while the policy generates: only the rest of the time is waiting
        generation_seconds = self.policy.generation_seconds - generated_before
        self.stopwatch.seconds["generate"] += generation_seconds
        self.stopwatch.seconds["score"] -= generation_seconds
        return pending

    def _next_async_step(self, method: Method) -> PendingStep:
        """The groups of this step; later steps are queued so that generation goes on."""
        max_steps = self.recipe_at(self.state.step).max_steps
        last = min(self.state.step + self.steps_ahead, max_steps - 1)
        for step in range(self.state.step + len(self.rollout_queue.pending), last + 1):
            generate_step = self._make_step_generator(method, step)
            self.rollout_queue.submit(generate_step, self._step_start)
        with self.stopwatch.lap("generate"):
            return self.rollout_queue.pop()

    @property
    def _step_start(self) -> StepStart:
        return StepStart(self.state.history.tasks_drawn, self.state.unfinished_groups)

    def _make_step_generator(self, method: Method, step: int) -> GenerateStep:
        return make_step_generator(
            self.recipe, method, self.policy, self.tasks, self.state, step, self.ranks
        )

    def _build_batch(self, method: Method, collected: CollectedGroups) -> Batch:
        """The collated batch with precomputed signals and advantages."""
        if not collected.kept_groups:
            return EMPTY_BATCH
        batch = self._collate(collected)
        kill_point("step/collated")
        with self.stopwatch.lap("logprobs"):
            batch = self._retry_on_oom(partial(self._compute_signals, method, batch))
        kill_point("step/logprobs_computed")
        batch = batch.with_advantage(method.advantage)
        kill_point("step/advantages_computed")
        return batch

    def _collate(self, collected: CollectedGroups) -> Batch:
        batch = collate(collected.kept_groups, self.policy.encode, self.state.history.task_history)
        reprompted = self.aux_models.encode_reprompted(self.policy, collected.kept_groups)
        row = torch.arange(len(batch.rollout))
        rank = collected.rank_of_rows(batch.rollout)
        return replace(batch, inputs={**batch.inputs, **reprompted, "row": row, "rank": rank})

    def _replayer(self, method: Method) -> Replayer:
        def measure(batch: Batch) -> Batch:
            with self.stopwatch.lap("logprobs"):
                return self._retry_on_oom(partial(self._add_signals, method, batch))

        return Replayer(self.state.replay_buffer, self._collate, measure, self.ranks)

    def _compute_signals(self, method: Method, batch: Batch) -> Batch:
        if self._must_recompute_old_logp():
            batch = replace(batch, old_logp=self._recomputed_old_logp(batch))
        return self._add_signals(method, batch)

    def _add_signals(self, method: Method, batch: Batch) -> Batch:
        signal_models = self.aux_models.signal_models
        return add_signals(self.policy, signal_models, batch, method.requires.signals, self.ranks)

    def _must_recompute_old_logp(self) -> bool:
        tolerance = self.recipe.old_logp_tolerance
        if tolerance is None:
            tolerance = logp_rounding(self.recipe.policy)
        within = self.state.sampler_mismatch <= tolerance  # False for NaN
        return bool(self.recipe.max_staleness) or not within

    def _recomputed_old_logp(self, batch: Batch) -> Tensor:
        """Log-probs under the trainer's policy, where it sampled or scored the action here."""
        has_logp = (batch.signals["sampled"] > 0) | (batch.old_logp != 0)
        on_policy = has_logp & (batch.signals["off_context"] == 0)
        if not on_policy.any():
            return batch.old_logp  # demonstrations need no forward pass
        logp = evaluate_all(self.policy, self.policy, batch, ["logp"], self.ranks)["logp"]
        return torch.where(on_policy, logp, batch.old_logp)

    def _retry_on_oom(self, fn: Callable[[], Result]) -> Result:
        """Retry `fn` in smaller micro-batches; gradients of a failed attempt are cleared."""
        optimizers = self.state.optimizers.values()

        def zero_grad() -> None:
            for optimizer in optimizers:
                optimizer.zero_grad()

        return retry_on_oom(fn, self.policy, zero_grad, self.notes.append)

    def _sum_gradients(self) -> None:
        for optimizer in self.state.optimizers.values():
            sum_gradients(self.ranks, optimizer_parameters(optimizer), "gradients summed")

    def _run_updates(
        self, method: Method, batch: Batch, learning_rates: Mapping[str, float], trace: Trace
    ) -> Metrics:
        rng = make_rng(self.recipe.seed, "plan", self.state.step)
        update_metrics: list[Metrics] = []
        for minibatch in method.updates(batch, rng):
            with self.stopwatch.lap("update"):
                values = self._retry_on_oom(
                    partial(
                        accumulate_gradients,
                        self.policy,
                        method,
                        minibatch,
                        trace,
                        measure_all_rows=bool(self.recipe.method.controlled_metrics),
                        ranks=self.ranks,
                    )
                )
                self._sum_gradients()
            kill_point("step/accumulated")
            with self.stopwatch.lap("update"):
                for name, optimizer in self.state.optimizers.items():
                    lr = learning_rates[name]
                    values = optimizer_step(optimizer, lr, self.recipe.max_grad_norm) | values
                self.policy.weights_updated()
            update_metrics.append(values)
            kill_point("step/updated")
            if self.recipe.ema:
                self.recipe.ema.update(self.state.ema_weights, self.policy.weights())
                kill_point("step/ema_updated")
        for other in collect_json(self.ranks, trace, "updated"):
            trace.update((int(row), signals) for row, signals in other.items())
        return metrics.advantage_metrics(method, batch) | metrics.mean_over_updates(update_metrics)
