"""Generation of the groups of one step, now or later in another thread."""

from collections.abc import Sequence
from concurrent.futures import Future

from grupo.config.staleness import generation_schedule
from grupo.core.types import Task
from grupo.core.usage import count_usage
from grupo.distributed.base import Ranks
from grupo.distributed.exchange import exchange_json, sum_counts
from grupo.method import Method
from grupo.models.base import Policy
from grupo.recipe import Recipe
from grupo.training.collect.async_rollouts import GenerateStep, PendingStep, StepStart
from grupo.training.collect.groups import collect_groups
from grupo.training.collect.unfinished_groups import StepLimit, step_key
from grupo.training.resume.state import State
from grupo.util.event_loop import run_coroutine


def make_step_generator(
    recipe: Recipe,
    method: Method,
    policy: Policy,
    tasks: Sequence[Task],
    state: State,
    step: int,
    ranks: Ranks,
) -> GenerateStep:
    """A function that generates a step with the weights and the history of this moment.

    Its arguments are what it takes over from the step before, and a future that cancels the
    generation when it is done.

    Args:
        recipe: The recipe of the run.
        method: The method of the step, with resolved schedules.
        policy: The policy that generates.
        tasks: The training tasks.
        state: Its history and step are those before the update that may run at the same time.
        step: The number of the step that is generated, from 0.
        ranks: The processes that share the generation.
    """
    history = state.history.copy()
    version = state.step
    weights = policy.weight_sync.snapshot()

    def generate_step(start: StepStart, stop: Future[None]) -> PendingStep:
        policy.sync_weights(weights, version)
        history.tasks_drawn = start.tasks_drawn
        actor = policy.actor(step_key(recipe.seed, step))
        coroutine = collect_groups(
            method,
            recipe.env,
            actor,
            tasks,
            history,
            num_prompts=recipe.prompts_per_step,
            seed=recipe.seed,
            ranks=ranks,
            limit=_step_limit(recipe, step),
            unfinished=start.unfinished,
        )
        with count_usage() as usage:
            collected = run_coroutine(coroutine, stop)
        counts = [actor.generated_tokens, usage]
        parts = exchange_json(ranks, counts, f"rollouts of step {step + 1}", "generate")
        tokens, usages = zip(*parts, strict=True)
        return PendingStep(collected, history.tasks_drawn, sum_counts(tokens), sum_counts(usages))

    return generate_step


def _step_limit(recipe: Recipe, step: int) -> StepLimit | None:
    if not recipe.tokens_per_step:
        return None
    max_later_steps = generation_schedule(recipe).max_later_steps
    return StepLimit(step, recipe.tokens_per_step, max_later_steps)
