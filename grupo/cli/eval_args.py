"""What `grupo eval` measures: a run as it ended, or a model, on the tasks that are asked."""

from dataclasses import dataclass
from pathlib import Path

from grupo.cli.build_recipe import (
    RecipeArgs,
    check_verifier,
    env_from_reward_functions,
    parse_option,
    split_arguments,
)
from grupo.config.validate import check_recipe, check_tasks
from grupo.core.errors import ConfigError
from grupo.core.rng import derive_key
from grupo.core.types import Task
from grupo.models.base import Policy
from grupo.recipe import Recipe
from grupo.rollouts.evaluate import EvalResult, evaluate
from grupo.tasks import parse_task_source, split_tasks
from grupo.training.trainer import load_policy


@dataclass(frozen=True)
class EvalArgs:
    """What a command line says; empty is: as the run, or the quickstart, has it."""

    arguments: tuple[str, ...]
    model: str
    tasks: str
    rewards: tuple[str, ...]

    def __call__(self, count: int, attempts: int) -> EvalResult:
        """Attempt at most `count` tasks, `attempts` times each."""
        policy, recipe = self._policy()
        tasks = self._tasks(recipe, count)
        check_tasks(policy, tasks)
        return evaluate(
            policy,
            recipe.env,
            tasks,
            attempts=attempts,
            success=recipe.evaluation.success,
            turn_strategy=recipe.evaluation.turn_strategy,
            key=derive_key(recipe.seed, "held-out"),  # as a run does: its own numbers come again
        )

    def _policy(self) -> tuple[Policy, Recipe]:
        run, fields = split_arguments(self.arguments)
        if bool(run) == bool(self.model):
            given = "both a run and a model are" if run else "neither a run nor a model is"
            raise ConfigError(f"run: {given} given. Allowed: a run's folder, or --model FOLDER.")
        if not run:
            recipe = RecipeArgs(model=self.model, rewards=self.rewards, fields=fields)()
            check_recipe(recipe)
            return recipe.policy.build(), recipe
        if fields:
            name, _ = fields[0]
            raise ConfigError(f"--{name}: a run is measured with the recipe it was begun with.")
        policy, recipe = load_policy(Path(run))
        return policy, recipe.replace(
            env=env_from_reward_functions(self.rewards)
        ) if self.rewards else recipe

    def _tasks(self, recipe: Recipe, count: int) -> list[Task]:
        if not self.tasks:
            asked = split_tasks(recipe.tasks, recipe.eval_tasks, recipe.seed)[1]
        else:
            if not self.rewards:
                check_verifier(recipe, self.tasks)
            asked = parse_option(parse_task_source, "tasks", self.tasks).load()
        if not asked:
            raise ConfigError("tasks: none are held out. Say which with --tasks.")
        return [asked[i] for i in range(min(count, len(asked)))]
