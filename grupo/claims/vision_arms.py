"""Arms of claims on pictures: a toy vision-language model as it is, and after training."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from grupo.claims.stored_runs import Metrics
from grupo.claims.tiny_lm import mean_terms, trained
from grupo.claims.tiny_vision import vision_recipe
from grupo.core.interfaces import EnvSpec
from grupo.core.types import Task
from grupo.method import Method
from grupo.models.vision_lm import VisionLM
from grupo.rollouts.evaluate import HasActor
from grupo.tasks.base import TaskSource
from grupo.toy.vision_lm import ToyVisionLM, ensure_trained_vision


@dataclass(frozen=True)
class VisionArms:
    """Arms that start from the same toy model and are evaluated alike.

    Args:
        model: The toy model.
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
        folder = str(ensure_trained_vision(self.model))
        policy = VisionLM(folder, max_new_tokens=self.max_new_tokens, tokens_per_microbatch=8192)
        return self.evaluate(policy.build(), seed)

    def trained(self, env: EnvSpec, tasks: TaskSource, method: Method) -> Callable[[int], Metrics]:
        """The arm of a method: trains with a seed and returns the metrics."""

        def run(seed: int) -> Metrics:
            recipe = vision_recipe(
                self.model,
                env,
                tasks,
                method,
                steps=self.steps,
                seed=seed,
                max_new_tokens=self.max_new_tokens,
            )
            recipe = recipe.replace(prompts_per_step=self.prompts_per_step)
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
