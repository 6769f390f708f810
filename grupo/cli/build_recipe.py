"""Build a recipe from the arguments of a command."""

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TypeVar

from grupo.catalogue.parse import parse_method
from grupo.cli.env_option import parse_env, with_rewards
from grupo.cli.fields import FLAGS, Fields
from grupo.config.clock import describe_clock
from grupo.config.defaults import is_set
from grupo.config.option_hints import explain_option
from grupo.config.overrides import apply_overrides, suggest_field
from grupo.config.recipe_files import load_recipe_file, recipe_to_toml
from grupo.config.staleness import describe_staleness
from grupo.config.supervised import column_sampler
from grupo.core.component import component_fields, walk
from grupo.core.serialization import objects_in_memory
from grupo.envs import RewardTerm, Unscored
from grupo.recipe import Recipe, TaskSource
from grupo.rewards import ReasoningGymVerifier
from grupo.rollouts.evaluate import TOTAL_REWARD, SuccessCriterion
from grupo.tasks import EvalShare, parse_task_source
from grupo.toy import quickstart
from grupo.training.resume.run_folder import RunFolder
from grupo.training.resume.start_from import with_model
from grupo.util.errors import ConfigError, suggest
from grupo.util.importing import load_module
from grupo.util.run_files import LOCK_FILE, RECIPE_JSON
from grupo.util.user_paths import is_recipe_file, parse_path

T = TypeVar("T")
NOT_WHOLE = re.compile(r"[-+\d.eE]+%?")
OPTION_NAMES = (
    *("run", "method", "model", "tasks", "eval-tasks", "reward", "steps"),
    *FLAGS,
)
OTHER_FILES = (".json", ".jsonl", ".csv", ".parquet", ".safetensors", ".gguf")  # no recipes


@dataclass(frozen=True)
class RecipeArgs:
    """Arguments that choose or change a recipe; empty ones leave the recipe as it is.

    Args:
        recipe: Address of the recipe to start from; the quickstart's recipe by default.
        method: A method by name, call or address.
        model: Folder or hub name of the model, or a run or adapters to start from.
        tasks: Source of the tasks.
        eval_tasks: Number of tasks to hold out, or their source.
        rewards: Reward functions by address, which become the reward terms of the environment.
        fields: Further fields, applied last.
    """

    recipe: str = ""
    method: str = ""
    model: str = ""
    tasks: str = ""
    eval_tasks: str = ""
    rewards: tuple[str, ...] = ()
    fields: Fields = ()

    def __call__(self) -> Recipe:
        """The recipe with all changes."""
        if not self.recipe:
            return self.apply_to(quickstart.RECIPE)
        return self.apply_to(parse_option(load_recipe, "recipe", self.recipe))

    def apply_to(self, recipe: Recipe) -> Recipe:
        """The given recipe with all changes."""
        _check_known_fields(self.fields, recipe)
        if self.model:
            recipe = with_model(recipe, self.model)
        if self.tasks or self.eval_tasks:
            recipe = self._with_tasks(recipe)
        if env_text := dict(self.fields).get("env"):
            recipe = self._with_env(recipe, env_text)
        elif self.rewards:
            recipe = self._with_rewards(recipe)
        if self.method:
            recipe = recipe.replace(method=parse_option(parse_method, "method", self.method))
        if self.tasks and not self.rewards:
            recipe = self._without_verifier(recipe)
        return apply_overrides(recipe, [field for field in self.fields if field[0] != "env"])

    def _with_rewards(self, recipe: Recipe) -> Recipe:
        """The recipe whose environment has these reward terms and no others."""
        terms = reward_terms(self.rewards)
        names = ["", TOTAL_REWARD, *(term.name for term in terms)]
        evaluation, success = recipe.evaluation, recipe.evaluation.success
        if success.reward_term not in names:
            if self.recipe and not is_set("evaluation.success", {name for name, _ in self.fields}):
                raise ConfigError(
                    f"reward: the recipe counts {success} as a success, and no reward function is"
                    f" named {success.reward_term!r}. Write --reward"
                    f" {success.reward_term}={self.rewards[0].rpartition('=')[2]}, or give"
                    " --evaluation.success."
                )
            evaluation = replace(evaluation, success=SuccessCriterion())
        return recipe.replace(env=with_rewards(recipe.env, terms), evaluation=evaluation)

    def _without_verifier(self, recipe: Recipe) -> Recipe:
        """The recipe for tasks without a reward: supervised methods need none, others raise."""
        is_chosen = "env" in dict(self.fields) or bool(self.recipe)
        if is_chosen or not column_sampler(recipe.method):
            check_verifier(recipe, self.tasks)
            return recipe
        evaluation = replace(recipe.evaluation, attempts=0, success=SuccessCriterion())
        return recipe.replace(env=Unscored(), evaluation=evaluation)

    def _with_env(self, recipe: Recipe, text: str) -> Recipe:
        """The recipe with an environment of another library, and its tasks if none are given."""
        env, tasks = parse_option(parse_env, "env", text)
        if self.rewards:
            env = with_rewards(env, reward_terms(self.rewards))
        if tasks and not self.tasks:
            count = recipe.eval_tasks if isinstance(recipe.eval_tasks, int) else Recipe.eval_tasks
            eval_tasks = parse_eval_tasks(self.eval_tasks) if self.eval_tasks else count
            recipe = recipe.replace(tasks=tasks, eval_tasks=eval_tasks)
        evaluation = replace(recipe.evaluation, success=SuccessCriterion())
        return recipe.replace(env=env, evaluation=evaluation)

    def _with_tasks(self, recipe: Recipe) -> Recipe:
        """The recipe with other tasks.

        Held-out tasks of a source of their own do not belong to the new tasks: the default number
        of new tasks is held out instead.
        """
        eval_tasks = recipe.eval_tasks
        if self.tasks:
            source = parse_option(parse_task_source, "tasks", self.tasks)
            recipe = recipe.replace(tasks=source)
            is_drawn = isinstance(eval_tasks, int | EvalShare)
            eval_tasks = eval_tasks if is_drawn else Recipe.eval_tasks
        if self.eval_tasks:
            eval_tasks = parse_eval_tasks(self.eval_tasks)
        return recipe.replace(eval_tasks=eval_tasks)


def parse_eval_tasks(text: str) -> int | TaskSource:
    """The number of tasks to hold out, or the source of the held-out tasks."""
    try:
        return int(text)
    except ValueError:
        if NOT_WHOLE.fullmatch(text):
            raise ConfigError(
                f"eval_tasks: {text!r}. Allowed: a whole number of tasks, or a source of tasks."
                " Write --eval-tasks 20, or leave it out: a tenth of the tasks is held out."
            ) from None
        return parse_option(parse_task_source, "eval_tasks", text)


def load_recipe(address: str) -> Recipe:
    """The recipe at an address.

    Addresses are `FILE.py:NAME`, NAME being RECIPE by default, a TOML or YAML file, and
    `RUN/recipe.json` for the recipe of a run.
    """
    if is_recipe_file(address):
        return load_recipe_file(address)
    if Path(address).name == RECIPE_JSON and (Path(address).parent / LOCK_FILE).is_file():
        return _recipe_of_run(Path(address).parent)
    if (path := parse_path(address)).is_dir() or path.suffix in OTHER_FILES:
        raise ConfigError(
            f"{address!r} is no recipe. Allowed: FILE.py:NAME, FILE.toml, FILE.yaml,"
            " RUN/recipe.json. A model is"
            " --model FOLDER or --model FILE.gguf, a table of tasks --tasks FILE; a run is"
            " continued by `grupo resume RUN`."
        )
    location, colon, name = address.rpartition(":")
    if not colon:
        location = address
        name = "RECIPE"
    variables = vars(load_module(location))
    if name not in variables:
        recipes = [key for key, value in variables.items() if isinstance(value, Recipe)]
        raise ConfigError(f"recipe: {location!r} has no {name!r}. {suggest(name, recipes)}")
    recipe = variables[name]
    if not isinstance(recipe, Recipe):
        kind = type(recipe).__name__
        raise ConfigError(f"recipe: {name!r} in {location!r} is of type {kind}. Allowed: Recipe.")
    return recipe


def _recipe_of_run(run: Path) -> Recipe:
    recipe = RunFolder.open(run).recipe
    if objects := objects_in_memory(recipe):
        raise ConfigError(
            f"recipe: only the process that began the run {str(run)!r} had {', '.join(objects)}."
            " Write the recipe as FILE.py:NAME."
        )
    return recipe


def reward_terms(addresses: Sequence[str]) -> tuple[RewardTerm, ...]:
    """The reward terms of reward functions: `[name=][weight*]module:function`."""
    return tuple(parse_option(_reward_term, "reward", address) for address in addresses)


def _reward_term(text: str) -> RewardTerm:
    before, equals, after = text.partition("=")
    weight, asterisk, address = (after if equals else before).rpartition("*")
    name = before if equals else Path(address).name.rpartition(":")[2]
    if equals and NOT_WHOLE.fullmatch(after):
        raise ConfigError(f"{text!r}: the weight stands first. Allowed: {after}*{before}.")
    if equals and "*" in before:
        weight, _, name = before.partition("*")
        raise ConfigError(
            f"{text!r}: the weight stands before the address. Allowed: {name}={weight}*{after}."
        )
    try:
        return RewardTerm(name, address, float(weight) if asterisk else 1.0)
    except ValueError as error:
        if isinstance(error, ConfigError):
            raise
        raise ConfigError(
            f"{weight!r} before * is not a number. Allowed: a number, as in 0.2*file.py:function."
        ) from error


def check_verifier(recipe: Recipe, tasks: str) -> None:
    """Raise if the recipe's only reward is reasoning-gym's verifier and the tasks are others."""
    has_verifier = any(isinstance(part, ReasoningGymVerifier) for part in walk(recipe.env))
    if has_verifier and not tasks.startswith("rg:"):
        raise ConfigError(
            f"reward: none is given for the tasks {tasks!r}, and the recipe's own scores only tasks"
            " of reasoning-gym. Write --reward file.py:function."
        )


def parse_option(parser: Callable[[str], T], option: str, text: str) -> T:
    """The parsed value of an option; error messages begin with the option's name."""
    try:
        return parser(text)
    except ConfigError as error:
        if str(error).startswith(f"{option}: "):
            raise
        raise ConfigError(f"{option}: {error}") from error


def describe_recipe(recipe: Recipe) -> str:
    """The whole recipe in TOML; a step and what the clock decides are described in comments."""
    lines = (recipe.describe_step(), *describe_staleness(recipe), *describe_clock(recipe))
    comments = [f"# {line}" for line in lines]
    return "\n".join([*comments, "", recipe_to_toml(recipe).rstrip()])


def _check_known_fields(fields: Fields, recipe: Recipe) -> None:
    known = component_fields(recipe)
    options = [option for option in OPTION_NAMES if option.replace("-", "_") not in known]
    for field, value in fields:
        name = field.partition(".")[0]
        if name not in known:
            option = field.replace("_", "-")
            if explanation := explain_option(field, value):
                raise ConfigError(f"--{option}: grupo has no such option. {explanation}")
            hint = suggest_field(name, recipe, options)
            raise ConfigError(
                f"--{option}: there is no such option and no field {name!r} of a recipe. {hint}"
            )
