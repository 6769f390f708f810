"""Supervised fine-tuning of toy models as a recipe of the same trainer."""

from collections.abc import Callable, Sequence
from typing import Protocol

from grupo.algo.optimizers.decay import all_parameters
from grupo.core.schedules import Cosine, Warmup
from grupo.core.types import Task
from grupo.envs import SingleTurn
from grupo.methods.sft import sft
from grupo.models.base import PolicySpec
from grupo.recipe import Adam, EarlyStopping, Evaluation, Recipe
from grupo.rollouts.evaluate import SuccessCriterion
from grupo.rollouts.samplers import DemonstrationSampler
from grupo.tasks.base import TaskSource


class SFTSettings(Protocol):
    """Tasks of a toy model and the numbers of its supervised training."""

    @property
    def tasks(self) -> TaskSource: ...

    @property
    def eval_tasks(self) -> TaskSource: ...

    @property
    def max_steps(self) -> int: ...

    @property
    def prompts_per_step(self) -> int: ...

    @property
    def learning_rate(self) -> float: ...

    @property
    def eval_every(self) -> int: ...

    @property
    def target_accuracy(self) -> float: ...

    @property
    def seed(self) -> int: ...


def sft_recipe(
    toy_model: SFTSettings,
    policy: PolicySpec,
    env: SingleTurn,
    solve: Callable[[Task], Sequence[str]],
) -> Recipe:
    """Supervised fine-tuning as a recipe: demonstrations as rollouts, the NLL as the loss.

    Args:
        toy_model: Provides the tasks and the numbers of the training.
        policy: The policy that is trained.
        env: Scores the evaluation.
        solve: Returns the demonstrations of a task.
    """
    return Recipe(
        policy=policy,
        env=env,
        tasks=toy_model.tasks,
        eval_tasks=toy_model.eval_tasks,
        method=sft().replace(sampler=DemonstrationSampler(solve)),
        max_steps=toy_model.max_steps,
        prompts_per_step=toy_model.prompts_per_step,
        learning_rate=Warmup(0.05, Cosine(toy_model.learning_rate, toy_model.learning_rate / 20)),
        optimizer=Adam(weight_decay=0.01, decayed=all_parameters),
        evaluation=Evaluation(2, toy_model.eval_every, SuccessCriterion("correct")),
        early_stopping=EarlyStopping(toy_model.target_accuracy),
        save_every=toy_model.max_steps,
        seed=toy_model.seed,
    )
