"""Recipes of claims that need pictures: a toy vision-language model on generated tasks."""

from grupo.core.interfaces import EnvSpec
from grupo.core.schedules import Linear, Warmup
from grupo.method import Method
from grupo.models.vision_lm import VisionLM
from grupo.recipe import Recipe
from grupo.tasks.base import TaskSource
from grupo.toy.vision_lm import ToyVisionLM, ensure_trained_vision


def vision_recipe(
    model: ToyVisionLM,
    env: EnvSpec,
    tasks: TaskSource,
    method: Method,
    *,
    steps: int,
    seed: int,
    max_new_tokens: int = 4,
) -> Recipe:
    """Train a toy model, with tower and projector frozen, on 32 tasks a step.

    Args:
        model: The toy model; it is trained first if it does not exist.
        env: Scores the answers.
        tasks: The tasks.
        method: The method.
        steps: Number of steps.
        seed: Seed of the run.
        max_new_tokens: Longest answer in tokens.
    """
    folder = str(ensure_trained_vision(model))
    return Recipe(
        policy=VisionLM(folder, max_new_tokens=max_new_tokens, tokens_per_microbatch=8192),
        env=env,
        tasks=tasks,
        eval_tasks=0,
        method=method,
        max_steps=steps,
        prompts_per_step=32,
        learning_rate=Warmup(0.1, Linear(2e-3, 2e-4)),
        seed=seed,
    )
