"""One step of learning: sample, judge, credit, update. It knows neither disk nor screen."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import TypeVar

import torch

from grupo.algo.optimizer import optimizer_step
from grupo.config.validate import check_columns, check_component_tasks, check_tasks
from grupo.core.batch import EMPTY_BATCH, Batch
from grupo.core.event_loop import run_coroutine
from grupo.core.rng import derive_key, make_rng, seed_torch
from grupo.core.schedules import resolve_schedules
from grupo.core.timing import Stopwatch
from grupo.method import Method
from grupo.recipe import Recipe
from grupo.rollouts.evaluate import EvalResult, evaluate
from grupo.storage.fault_injection import kill_point
from grupo.tasks import split_tasks
from grupo.training import metrics
from grupo.training.async_rollouts import PendingStep, with_importance_correction
from grupo.training.collate import collate
from grupo.training.collect import CollectedGroups, collect_groups
from grupo.training.oom_retry import retry_on_oom
from grupo.training.state import State
from grupo.training.token_records import Trace
from grupo.training.update import accumulate_gradients, add_signals, evaluate_all

Metrics = dict[str, float]
Result = TypeVar("Result")


@dataclass(frozen=True)
class TrainStepResult:
    """What a step sampled, what was learned from, its numbers, and what else is to be said.

    `trace` is what the policy said of the actions it learned from.
    """

    collected: CollectedGroups
    batch: Batch
    metrics: Metrics
    trace: Trace
    notes: tuple[str, ...] = ()


class Learner:
    """What a recipe makes of a state: the next one."""

    def __init__(self, recipe: Recipe) -> None:
        self.recipe = recipe
        self.tasks, self.eval_tasks = split_tasks(recipe.tasks, recipe.eval_tasks, recipe.seed)
        seed_torch(recipe.seed, "build")  # adapters are born at random
        self.policy = recipe.policy.build()
        check_tasks(self.policy, self.eval_tasks, self.tasks)
        check_columns(recipe.method, self.tasks)
        check_component_tasks(recipe.env, self.eval_tasks, self.tasks)
        method, helpers = recipe.method, self.policy.attach_heads(recipe.method.aux_heads)
        self.aux_models = self.policy.attach_aux_models(
            method.required_signals, method.reference, recipe.aux_models
        )
        optimizers = {"optimizer": recipe.optimizer(self.policy.parameters())}
        if method.aux_heads:
            optimizers["helping"] = recipe.aux_head_optimizer(list(helpers.parameters()))
        self.state = State(self.policy, optimizers, self.aux_models, self.tasks)
        self.stopwatch, self.notes, self.rollout_queue = (
            Stopwatch(),
            list[str](),
            self.state.rollout_queue,
        )
        if recipe.max_staleness:
            self.policy.detach_sampler()

    def step(self) -> TrainStepResult:
        """Sample and learn once."""
        self.stopwatch, self.notes, step, recipe = Stopwatch(), [], self.state.step, self.recipe
        kill_point("step/begin")
        seed_torch(recipe.seed, "step", step)
        measured = self.state.history.metrics
        choices = (recipe.method, recipe.learning_rate, recipe.aux_head_learning_rate)
        progress = recipe.progress(step, self.state.generated_tokens, self.state.training_seconds)
        method, *rates = resolve_schedules(choices, progress, measured)
        method = with_importance_correction(method) if recipe.max_staleness else method
        gathered = (
            self._next_async_groups(method) if recipe.max_staleness else self._sample_groups(method)
        )
        batch = self._build_batch(method, gathered)
        trace = Trace()
        seen = self._run_updates(method, batch, rates, trace) if gathered.kept_groups else {}
        numbers = metrics.group_metrics(gathered, batch) | seen
        numbers |= metrics.time_metrics(self.stopwatch, numbers) | {"lr": rates[0]}
        numbers["staleness"] = metrics.mean_staleness(gathered, step)
        numbers["budget"] = float(self.policy.tokens_per_microbatch)
        self.state.record_step(gathered.sampled_groups, numbers, recipe.method)
        kill_point("step/recorded")
        return TrainStepResult(gathered, batch, numbers, trace, tuple(self.notes))

    def evaluate(self, label: str) -> EvalResult:
        """Attempt the held-out tasks, and note how it went under `when`."""
        watch, choice = Stopwatch(), self.recipe.evaluation
        self.rollout_queue.wait_all()  # the voice is theirs until then
        self.policy.sync_weights(self.policy.weight_sync.snapshot(), self.state.step)
        score = evaluate(
            self.policy,
            self.recipe.env,
            self.eval_tasks,
            attempts=choice.attempts,
            success=choice.success,
            turn_strategy=choice.turn_strategy,
            key=derive_key(self.recipe.seed, "held-out"),
        )
        self.state.eval_scores[label] = score.to_data()
        self.state.seconds += watch.elapsed
        kill_point("run/evaluated")
        return score

    def _sample_groups(self, method: Method) -> CollectedGroups:
        spoken = self.policy.generation_seconds
        with self.stopwatch.lap("judge"):
            sampled = self._make_step_generator(method, self.state.step)(
                self.state.history.tasks_drawn
            )
        # the policy speaks while others are judged: what it does not speak is waited for
        spoken = self.policy.generation_seconds - spoken
        self.stopwatch.seconds["sample"] += spoken
        self.stopwatch.seconds["judge"] -= spoken
        return self._accept(sampled)

    def _next_async_groups(self, method: Method) -> CollectedGroups:
        """What was sampled for this step, while later ones go on being sampled."""
        last = min(self.state.step + self.recipe.max_staleness, self.recipe.max_steps - 1)
        for step in range(self.state.step + len(self.rollout_queue.pending), last + 1):
            self.rollout_queue.submit(
                self._make_step_generator(method, step), self.state.history.tasks_drawn
            )
        with self.stopwatch.lap("sample"):
            return self._accept(self.rollout_queue.pop())

    def _accept(self, sampled: PendingStep) -> CollectedGroups:
        self.state.history.tasks_drawn = sampled.tasks_drawn
        return sampled.collected

    def _make_step_generator(self, method: Method, step: int) -> Callable[[int], PendingStep]:
        """How to sample for a step with the weights and the history as they are now."""
        recipe, history, version = self.recipe, self.state.history.copy(), self.state.step
        weights = self.policy.weight_sync.snapshot()

        def sample(asked: int) -> PendingStep:
            self.policy.sync_weights(weights, version)
            history.tasks_drawn = asked
            act = self.policy.actor(derive_key(recipe.seed, "sample", step))
            given = (method, recipe.env, act, self.tasks, history)
            found = collect_groups(*given, num_prompts=recipe.prompts_per_step, seed=recipe.seed)
            return PendingStep(run_coroutine(found), history.tasks_drawn)

        return sample

    def _build_batch(self, method: Method, gathered: CollectedGroups) -> Batch:
        if not gathered.kept_groups:
            return EMPTY_BATCH
        batch = collate(gathered.kept_groups, self.policy.encode, self.state.history.task_history)
        kill_point("step/collated")
        views = self.aux_models.encode_reprompted(self.policy, gathered.kept_groups)
        row = torch.arange(len(batch.rollout))
        batch = replace(batch, inputs={**batch.inputs, **views, "row": row})
        with self.stopwatch.lap("observe"):
            batch = self._retry_on_oom(partial(self._compute_signals, method, batch))
        kill_point("step/observed")
        batch = batch.with_advantage(method.advantage)
        kill_point("step/credited")
        return batch

    def _compute_signals(self, method: Method, batch: Batch) -> Batch:
        if (
            self.recipe.max_staleness
            or not self.state.sampler_mismatch <= self.recipe.old_logp_tolerance
        ):
            old = evaluate_all(self.policy, self.policy, batch, ["logp"])["logp"]
            own = (batch.signals["sampled"] > 0) & (batch.signals["moved"] == 0)
            batch = replace(batch, old_logp=torch.where(own, old, batch.old_logp))
        return add_signals(self.policy, self.aux_models.scorers, batch, method.precomputed_signals)

    def _retry_on_oom(self, fn: Callable[[], Result]) -> Result:
        """The gradients of an update that is begun again are forgotten."""
        optimizers = self.state.optimizers.values()

        def undo() -> None:
            for optimizer in optimizers:
                optimizer.zero_grad()

        return retry_on_oom(fn, self.policy, undo, self.notes.append)

    def _run_updates(
        self, method: Method, batch: Batch, learning_rates: Sequence[float], trace: Trace
    ) -> Metrics:
        rng = make_rng(self.recipe.seed, "plan", self.state.step)
        seen = []
        for minibatch in method.updates(batch, rng):
            with self.stopwatch.lap("update"):
                watched = self._retry_on_oom(
                    partial(accumulate_gradients, self.policy, method, minibatch, trace)
                )
            kill_point("step/accumulated")
            with self.stopwatch.lap("update"):
                for optimizer, lr in zip(
                    self.state.optimizers.values(), learning_rates, strict=False
                ):
                    watched = optimizer_step(optimizer, lr, self.recipe.max_grad_norm) | watched
            seen.append(watched)
            kill_point("step/updated")
        return metrics.advantage_metrics(method, batch) | metrics.mean_over_updates(seen)
