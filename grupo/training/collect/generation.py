"""Generation of the groups of a run's steps: each in its turn, or steps ahead in another thread."""

from collections.abc import Sequence
from concurrent.futures import Future
from dataclasses import dataclass

from grupo.config.staleness import split_max_staleness
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
from grupo.training.collect.unfinished_groups import StepTokenLimit, step_key
from grupo.util.event_loop import run_coroutine
from grupo.util.timing import Stopwatch


@dataclass(frozen=True)
class Generation:
    """Generates the groups of the steps of a run.

    Args:
        recipe: The recipe of the run.
        policy: The policy that generates.
        tasks: The training tasks.
        queue: The steps that are generated ahead of the updates, if the recipe has a
            `max_staleness`.
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
        start: GenerationState,
        step: int,
        stopwatch: Stopwatch,
    ) -> GeneratedStep:
        """Generate the groups of a step while the caller waits.

        Args:
            method: The method of the step, with resolved schedules.
            history: The history before the step.
            start: The state that the step takes over from the step before.
            step: Number of the step, from 0.
            stopwatch: Times the generation and the rest, in which rewards are computed.
        """
        generated_before = self.policy.generation_seconds
        with stopwatch.lap("score"):
            generate_step = self._step_generator(method, history, step, version=step)
            generated_step = generate_step(start, Future())
            self.policy.weight_sync.release_memory()
        # rewards are computed while the policy generates: only the rest of the time is waiting
        generation_seconds = self.policy.generation_seconds - generated_before
        stopwatch.seconds["generate"] += generation_seconds
        stopwatch.seconds["score"] -= generation_seconds
        return generated_step

    def generate_ahead(
        self,
        method: Method,
        history: History,
        start: GenerationState,
        steps: range,
        stopwatch: Stopwatch,
    ) -> GeneratedStep:
        """Wait for the groups of the first step of a range, and queue the later steps.

        Another thread generates the queued steps, also after this method has returned.

        Args:
            method: As for `generate_now`.
            history: As for `generate_now`.
            start: As for `generate_now`.
            steps: Numbers of the step and of those that are generated ahead.
            stopwatch: Times the waiting.
        """
        for step in steps[len(self.queue.queued_steps) :]:
            generate_step = self._step_generator(method, history, step, version=steps[0])
            self.queue.submit(generate_step, start)
        with stopwatch.lap("generate"):
            return self.queue.pop()

    def _step_generator(
        self, method: Method, history: History, step: int, *, version: int
    ) -> GenerateStep:
        """A function that generates a step with the weights and the history of this moment.

        The update of an earlier step may run at the same time. `version` is the number of steps
        that have changed the weights.
        """
        recipe, policy = self.recipe, self.policy
        history = history.copy()
        weights = policy.weight_sync.snapshot()

        def generate_step(start: GenerationState, stop: Future[None]) -> GeneratedStep:
            policy.sync_weights(weights, version)
            history.num_tasks_drawn = start.num_tasks_drawn
            actor = policy.actor(step_key(recipe.seed, step))
            coroutine = collect_groups(
                method,
                recipe.env,
                actor,
                self.tasks,
                history,
                num_prompts=recipe.prompts_per_step,
                seed=recipe.seed,
                ranks=self.ranks,
                token_limit=_step_token_limit(recipe, step),
                unfinished_groups=start.unfinished_groups,
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


def _step_token_limit(recipe: Recipe, step: int) -> StepTokenLimit | None:
    if not recipe.tokens_per_step:
        return None
    max_later_steps = split_max_staleness(recipe).max_later_steps
    return StepTokenLimit(step, recipe.tokens_per_step, max_later_steps)
