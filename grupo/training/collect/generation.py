"""Generates the groups of a run's steps: one step at a time, or steps ahead in another thread."""

from collections.abc import Sequence
from concurrent.futures import Future
from dataclasses import dataclass

from grupo.config.staleness import staleness_limits
from grupo.core.types import Task
from grupo.core.usage import count_external_usage
from grupo.distributed.base import Ranks
from grupo.distributed.exchange import exchange_json, sum_counts
from grupo.distributed.phase import Phase
from grupo.method import Method
from grupo.models.base import Policy
from grupo.recipe import Recipe
from grupo.rollouts.history import History
from grupo.training.collect.async_rollouts import (
    AsyncRolloutQueue,
    GeneratedStep,
    GenerateStep,
    GenerationState,
)
from grupo.training.collect.groups import collect_groups
from grupo.training.collect.unfinished_groups import RolloutTokenLimit, step_key
from grupo.util.event_loop import run_coroutine
from grupo.util.timing import Stopwatch


@dataclass(frozen=True)
class StepGenerator:
    """Generates the groups of the steps of a run.

    Args:
        recipe: The recipe of the run.
        policy: The policy that generates.
        tasks: The training tasks.
        queue: The steps that are generated ahead of the updates; empty without `max_staleness`.
        ranks: The processes that share the generation.
    """

    recipe: Recipe
    policy: Policy
    tasks: Sequence[Task]
    queue: AsyncRolloutQueue
    ranks: Ranks

    def generate_now(
        self,
        method: Method,
        history: History,
        initial_state: GenerationState,
        step: int,
        stopwatch: Stopwatch,
    ) -> GeneratedStep:
        """Generate the groups of a step while the caller waits.

        Args:
            method: The resolved method of the step: without schedules and controllers.
            history: The history before the step.
            initial_state: The state that the step takes over from the step before.
            step: Index of the step, from 0.
            stopwatch: Receives the seconds of generation as `generate`, and the other seconds of
                this call as `score`.
        """
        seconds_before = self.policy.generation_seconds
        with stopwatch.lap("score"):
            generate_step = self._make_generate_step(method, history, step, version=step)
            generated_step = generate_step(initial_state, Future())
            self.policy.weight_sync.release_memory()
        # rewards are also computed while the policy generates; that time counts as generation
        generation_seconds = self.policy.generation_seconds - seconds_before
        stopwatch.seconds["generate"] += generation_seconds
        stopwatch.seconds["score"] -= generation_seconds
        return generated_step

    def take_generated_step(
        self,
        method: Method,
        history: History,
        initial_state: GenerationState,
        steps: range,
        stopwatch: Stopwatch,
    ) -> GeneratedStep:
        """Wait for the groups of the first step of a range, and queue the later steps.

        Another thread generates the queued steps, also after this method has returned.

        Args:
            method: The resolved method of the first step.
            history: The history before the first step.
            initial_state: The state that the first step takes over from the step before.
            steps: Indices of the first step and of the later steps, from 0.
            stopwatch: Times the waiting.
        """
        for step in steps[len(self.queue.queued_steps) :]:
            generate_step = self._make_generate_step(method, history, step, version=steps[0])
            self.queue.submit(generate_step, initial_state)
        with stopwatch.lap("generate"):
            return self.queue.pop()

    def _make_generate_step(
        self, method: Method, history: History, step: int, *, version: int
    ) -> GenerateStep:
        """Return a function that generates a step with the present weights and history.

        The function may run during the update of an earlier step. `version` is the version of the
        weights: the number of steps that have changed them.
        """
        recipe, policy = self.recipe, self.policy
        history = history.copy()
        weights = policy.weight_sync.snapshot()

        def generate_step(initial_state: GenerationState, stop: Future[None]) -> GeneratedStep:
            policy.sync_weights(weights, version)
            history.num_tasks_drawn = initial_state.num_tasks_drawn
            actor = policy.actor(step_key(recipe.seed, step))
            coroutine = collect_groups(
                method,
                recipe.env,
                actor,
                self.tasks,
                history,
                num_groups=recipe.prompts_per_step,
                seed=recipe.seed,
                ranks=self.ranks,
                token_limit=_step_token_limit(recipe, step),
                unfinished_groups=initial_state.unfinished_groups,
            )
            with count_external_usage() as own_usage:
                collected = run_coroutine(coroutine, stop)
            own_counts = [actor.generated_tokens, own_usage]
            counts = exchange_json(self.ranks, own_counts, Phase.GENERATION_ENDED, "generate")
            generated_tokens, external_usage = map(sum_counts, zip(*counts, strict=True))
            return GeneratedStep(
                collected, history.num_tasks_drawn, generated_tokens, external_usage
            )

        return generate_step


def _step_token_limit(recipe: Recipe, step: int) -> RolloutTokenLimit | None:
    if not recipe.tokens_per_step:
        return None
    max_later_steps = staleness_limits(recipe).max_later_steps
    return RolloutTokenLimit(step, recipe.tokens_per_step, max_later_steps)
