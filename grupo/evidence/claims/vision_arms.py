"""Claims on pictures: recipes of toy vision-language models, and arms that start from one."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from grupo.core.interfaces import EnvSpec
from grupo.core.schedules import Linear, Warmup
from grupo.core.types import Task
from grupo.evidence.claims.stored_runs import Metrics
from grupo.evidence.claims.tiny_lm import mean_terms, trained
from grupo.method import Method
from grupo.models.vision_lm import VisionLM
from grupo.recipe import Recipe
from grupo.rollouts.evaluate import HasActor
from grupo.tasks.base import TaskSource
from grupo.toy.vision_lm import ToyVisionLM, ensure_trained_vision


def vision_policy(model: ToyVisionLM, max_new_tokens: int) -> VisionLM:
    """A toy model as a policy, with tower and projector frozen.

    Args:
        model: The toy model, which `ensure_trained_vision` trains.
        max_new_tokens: Longest answer in tokens.
    """
    folder = str(model.model_dir)
    return VisionLM(folder, max_new_tokens=max_new_tokens, tokens_per_microbatch=8192)


def vision_recipe(
    model: ToyVisionLM,
    env: EnvSpec,
    tasks: TaskSource,
    method: Method,
    *,
    steps: int,
    seed: int,
    max_new_tokens: int,
    prompts_per_step: int = 32,
) -> Recipe:
    """Train a toy model, without evaluations.

    Args:
        model: The toy model, which `ensure_trained_vision` trains.
        env: Scores the answers.
        tasks: The tasks.
        method: The method.
        steps: Number of steps.
        seed: Seed of the run.
        max_new_tokens: Longest answer in tokens.
        prompts_per_step: Tasks of a step.
    """
    return Recipe(
        policy=vision_policy(model, max_new_tokens),
        env=env,
        tasks=tasks,
        eval_tasks=0,
        method=method,
        max_steps=steps,
        prompts_per_step=prompts_per_step,
        learning_rate=Warmup(0.1, Linear(2e-3, 2e-4)),
        seed=seed,
    )


@dataclass(frozen=True)
class VisionArms:
    """Arms that start from the same toy model and are evaluated alike.

    Args:
        model: The toy model; it is trained first if it does not exist.
        evaluate: Metrics of a policy, with a seed of its rollouts.
        steps: Steps of training.
        max_new_tokens: Longest answer in tokens.
        prompts_per_step: Tasks of a step.
    """

    model: ToyVisionLM
    evaluate: Callable[[HasActor, int], Metrics]
    steps: int
    max_new_tokens: int
    prompts_per_step: int = 32

    def beginner(self, seed: int) -> Metrics:
        """Metrics of the model before RL."""
        ensure_trained_vision(self.model)
        return self.evaluate(vision_policy(self.model, self.max_new_tokens).build(), seed)

    def trained(self, env: EnvSpec, tasks: TaskSource, method: Method) -> Callable[[int], Metrics]:
        """The arm of a method: trains with a seed and returns the metrics."""

        def run(seed: int) -> Metrics:
            ensure_trained_vision(self.model)
            recipe = vision_recipe(
                self.model,
                env,
                tasks,
                method,
                steps=self.steps,
                seed=seed,
                max_new_tokens=self.max_new_tokens,
                prompts_per_step=self.prompts_per_step,
            )
            return self.evaluate(trained(recipe).policy, seed)

        return run


def means_by_part(
    policy: HasActor,
    env: EnvSpec,
    parts: Mapping[str, Sequence[Task]],
    names: Sequence[str],
    *,
    attempts: int = 4,
    seed: int = 0,
) -> dict[str, float]:
    """Means of reward terms in parts of the tasks, as `part/name`.

    Args:
        policy: Generates the rollouts.
        env: Scores them.
        parts: Tasks by the name of the part.
        names: Reward terms, `reward` or `length`.
        attempts: Sampled rollouts per task.
        seed: Seed of the rollouts.
    """
    means = {
        part: mean_terms(policy, env, tasks, attempts=attempts, seed=seed)
        for part, tasks in parts.items()
    }
    return {f"{part}/{name}": means[part][name] for part in parts for name in names}
