"""What `grupo eval` measures: a run as it ended, or a model, on the tasks that are asked."""

from dataclasses import dataclass
from pathlib import Path

from grupo.cli.build_recipe import Choice, check_judge, judged_by, said, words_of
from grupo.config.validate import check, check_tasks
from grupo.core.errors import Refused
from grupo.core.rng import derive
from grupo.core.types import Task
from grupo.models.base import Policy
from grupo.recipe import Recipe
from grupo.rollouts.evaluate import Score, evaluate
from grupo.tasks import named, split
from grupo.training.trainer import policy_of


@dataclass(frozen=True)
class Asked:
    """What a command line says; empty is: as the run, or the quickstart, has it."""

    words: tuple[str, ...]
    model: str
    tasks: str
    rewards: tuple[str, ...]

    def __call__(self, count: int, attempts: int) -> Score:
        """Attempt at most `count` tasks, `attempts` times each."""
        policy, recipe = self._policy()
        tasks = self._tasks(recipe, count)
        check_tasks(policy, tasks)
        return evaluate(
            policy,
            recipe.env,
            tasks,
            attempts=attempts,
            solved=recipe.evaluation.solved,
            turn=recipe.evaluation.turn,
            key=derive(recipe.seed, "held-out"),  # as a run does: its own numbers come again
        )

    def _policy(self) -> tuple[Policy, Recipe]:
        run, fields = words_of(self.words)
        if bool(run) == bool(self.model):
            given = "both a run and a model are" if run else "neither a run nor a model is"
            raise Refused(f"run: {given} given. Allowed: a run's folder, or --model FOLDER.")
        if not run:
            recipe = Choice(model=self.model, rewards=self.rewards, fields=fields)()
            check(recipe)
            return recipe.policy.build(), recipe
        if fields:
            name, _ = fields[0]
            raise Refused(f"--{name}: a run is measured with the recipe it was begun with.")
        policy, recipe = policy_of(Path(run))
        return policy, recipe.but(env=judged_by(self.rewards)) if self.rewards else recipe

    def _tasks(self, recipe: Recipe, count: int) -> list[Task]:
        if not self.tasks:
            asked = split(recipe.tasks, recipe.held_out, recipe.seed)[1]
        else:
            if not self.rewards:
                check_judge(recipe, self.tasks)
            asked = said(named, "tasks", self.tasks).load()
        if not asked:
            raise Refused("tasks: none are held out. Say which with --tasks.")
        return [asked[i] for i in range(min(count, len(asked)))]
