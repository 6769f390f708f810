"""The arguments of `grupo eval`: a finished run or a model, and the tasks to evaluate it on."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from grupo.cli.build_recipe import RecipeArgs, check_verifier, parse_option, reward_terms
from grupo.cli.chosen_defaults import defaults_for
from grupo.cli.env_option import with_rewards
from grupo.cli.fields import Fields, split_arguments
from grupo.cli.paths import last_run
from grupo.cli.strategy_option import parse_strategies
from grupo.config.defaults import measure_tasks, with_choices
from grupo.config.scorers import has_scorer
from grupo.config.strategies import check_strategy, vote_extractor
from grupo.config.success import with_default_reward_term
from grupo.config.tool_formats import with_tool_formats
from grupo.config.validate import check_recipe, check_tasks
from grupo.core.component import to_code
from grupo.core.interfaces import single_response
from grupo.core.serialization import objects_in_memory
from grupo.core.types import Task
from grupo.models.base import Policy
from grupo.recipe import Recipe
from grupo.report.answer_progress import AnswerProgress
from grupo.rollouts.eval_result import EvalResult
from grupo.rollouts.evaluate import evaluate
from grupo.rollouts.strategy_comparison import compare_strategies
from grupo.rollouts.strategy_results import StrategyComparison
from grupo.tasks import parse_task_source, split_tasks
from grupo.training.resume.load_run import LAST, TRAINED, load_policy
from grupo.training.resume.run_folder import RunFolder
from grupo.util.console import err, print_error
from grupo.util.errors import ConfigError, suggest
from grupo.util.rng import derive_key
from grupo.util.user_paths import parse_path

GENERATION_FIELDS = ("policy.max_new_tokens", "policy.dtype")  # of the chosen ones
OPTIONS = (  # for a run
    *(
        "attempts",
        "calibration",
        "checkpoint",
        "count",
        "head",
        "json",
        "keep",
        "out",
        "reward",
        "strategy",
        "tasks",
        "weights",
    ),
)


@dataclass(frozen=True)
class EvalArgs:
    """Arguments of `grupo eval`; empty ones are those of the run, or of the quickstart.

    Args:
        arguments: A run's folder, or fields of a recipe for `model`.
        model: Folder or hub name of a model.
        tasks: Source of the tasks; the run's held-out tasks by default.
        rewards: Reward functions by address.
        checkpoint: Checkpoint of the run: "last", "best" or the number of a step.
        weights: Weights of the checkpoint: "trained" or "ema".
    """

    arguments: tuple[str, ...]
    model: str
    tasks: str
    rewards: tuple[str, ...]
    checkpoint: str = LAST
    weights: str = TRAINED

    def __call__(self, count: int, attempts: int) -> EvalResult:
        """Evaluate on at most `count` tasks with `attempts` sampled rollouts each."""
        policy, recipe, tasks = self._open(count)
        return evaluate(
            policy,
            recipe.env,
            tasks,
            num_attempts=attempts,
            success=with_default_reward_term(recipe.evaluation.success, recipe.env),
            turn_strategy=recipe.evaluation.turn_strategy,
            key=derive_key(recipe.seed, "held-out"),  # as in a run, whose numbers are reproduced
        )

    def compare(self, count: int, attempts: int, texts: Sequence[str]) -> StrategyComparison:
        """Compare turn strategies on at most `count` tasks with `attempts` answers each.

        Args:
            count: Number of tasks at most.
            attempts: Attempts of each strategy at each task.
            texts: The strategies as the user spells them.
        """
        strategies = parse_strategies(texts)
        policy, recipe, tasks = self._open(count)
        for strategy in strategies.values():
            check_strategy("strategy", strategy, recipe)
        extract = vote_extractor(strategies.values(), recipe.env)
        print_error(f"self-consistency counts answers of {to_code(extract)}")
        others = sum(strategy is not single_response for strategy in strategies.values())
        total = len(tasks) * (1 + (1 + others) * attempts)
        with AnswerProgress(err, total) as progress:
            return compare_strategies(
                policy,
                recipe.env,
                tasks,
                strategies,
                attempts_per_task=attempts,
                success=with_default_reward_term(recipe.evaluation.success, recipe.env),
                extract=extract,
                key=derive_key(recipe.seed, "strategies"),
                progress=progress,
            )

    @cached_property
    def run_folder(self) -> Path:
        """The folder of the run; of a pipeline, that of its last run."""
        run, _ = split_arguments(self.arguments)
        return last_run(parse_option(parse_path, "run", run))

    @property
    def trains_scorer(self) -> bool:
        """Whether the run's method trains a head on given answers, such as a reward model."""
        run, _ = split_arguments(self.arguments)
        return bool(run) and has_scorer(RunFolder.open(self.run_folder).recipe.method)

    def _open(self, count: int) -> tuple[Policy, Recipe, list[Task]]:
        """The policy, its recipe and the tasks."""
        run, fields = split_arguments(self.arguments)
        self._check_source(run, fields)
        policy, recipe, tasks = self._of_run(count) if run else self._of_model(fields, count)
        check_tasks(policy, tasks)
        return policy, recipe, tasks

    def _check_source(self, run: str, fields: Fields) -> None:
        if bool(run) == bool(self.model):
            problem = "both a run and a model are" if run else "neither a run nor a model is"
            raise ConfigError(f"run: {problem} given. Allowed: a run's folder, or --model FOLDER.")
        if not run and (self.checkpoint, self.weights) != (LAST, TRAINED):
            raise ConfigError("checkpoint and weights are of a run. Allowed: a run's folder.")
        if run and fields:
            option = fields[0][0].replace("_", "-")
            allowed = suggest(option, OPTIONS)
            raise ConfigError(f"--{option}: a run is evaluated with its own recipe. {allowed}")

    def _of_model(self, fields: Fields, count: int) -> tuple[Policy, Recipe, list[Task]]:
        """The policy of `model`, with the defaults of `grupo train` for its answers."""
        args = RecipeArgs(model=self.model, rewards=self.rewards, fields=fields)
        recipe = args()
        tasks = self._tasks(recipe, count)
        choices = defaults_for(recipe, args, measure_tasks(tasks))
        choices = [choice for choice in choices if choice.field in GENERATION_FIELDS]
        recipe = with_tool_formats(with_choices(recipe, choices))
        check_recipe(recipe)
        for choice in choices:
            print_error(str(choice))
        return recipe.policy.build(), recipe, tasks

    def _of_run(self, count: int) -> tuple[Policy, Recipe, list[Task]]:
        policy, recipe = load_policy(self.run_folder, self.checkpoint, self.weights)
        if self.rewards:
            recipe = recipe.replace(env=with_rewards(recipe.env, reward_terms(self.rewards)))
        _check_env(recipe)
        return policy, recipe, self._tasks(recipe, count)

    def _tasks(self, recipe: Recipe, count: int) -> list[Task]:
        if not self.tasks:
            _, tasks = split_tasks(recipe.tasks, recipe.eval_tasks, recipe.seed)
        else:
            if not self.rewards:
                check_verifier(recipe, self.tasks)
            tasks = parse_option(parse_task_source, "tasks", self.tasks).load()
        if not tasks:
            raise ConfigError("tasks: the recipe holds none out. Choose some with --tasks.")
        return [tasks[i] for i in range(min(count, len(tasks)))]


def _check_env(recipe: Recipe) -> None:
    """Raise `ConfigError` if only the process that trained had a part of the environment."""
    for path, missing in objects_in_memory(recipe.env, "env").items():
        raise ConfigError(
            f"{path}: only the process that trained had {missing}. Name a reward function with"
            " --reward module:function in its place."
        )
