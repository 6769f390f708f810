"""A recipe from a TOML or YAML file, with the messages of the command line."""

import sys
from collections.abc import Callable, Mapping
from dataclasses import fields
from pathlib import Path
from typing import Any

from grupo.catalogue.parse import parse_method
from grupo.config.option_hints import explain_option
from grupo.config.overrides import suggest_field
from grupo.config.recipe_files.read import line_of, read_data
from grupo.config.recipe_files.values import TYPE_KEY, make_component
from grupo.envs import RewardTerm, SingleTurn
from grupo.method import Method
from grupo.models.causal_lm import CausalLM
from grupo.recipe import Recipe
from grupo.rewards import ExactMatch
from grupo.tasks import DatasetTasks, parse_task_source
from grupo.util.errors import ConfigError

DEFAULT_TYPES = {"policy": CausalLM, "env": SingleTurn, "tasks": DatasetTasks}
EXAMPLES = {
    "policy": 'a table [policy] with model = "FOLDER_OR_HUB_NAME"',
    "env": 'a table [[env.rewards]] with name = "correct" and fn = "rewards.py:correct"',
    "tasks": 'tasks = "tasks.jsonl"',
}
SLOTS = [f.name for f in fields(Method)]


def load_recipe_file(path: str | Path) -> Recipe:
    """The recipe of a TOML or YAML file; every field that the file leaves out has its default.

    Raises:
        ConfigError: The file cannot be read, or a field does not fit; the message names the file,
            the line where the parser gives it, the field, its value and the allowed values.
    """
    location = Path(path)
    data, lines = read_data(location)
    folder = str(location.resolve().parent)
    if folder not in sys.path:  # as for a recipe in Python: modules beside it can be imported
        sys.path.append(folder)
    try:
        return recipe_from_data(data)
    except ConfigError as error:
        line = line_of(str(error), lines)
        place = f"{location}, line {line}" if line else str(location)
        raise ConfigError(f"{place}: {error}") from error


def recipe_from_data(data: Mapping[str, Any]) -> Recipe:
    """The recipe that the data of a file describe.

    >>> data = {"policy": {"model": "m"}, "tasks": "t.jsonl", "method": "gspo", "max_steps": 5}
    >>> reward = {"name": "correct", "fn": "ExactMatch()"}
    >>> recipe_from_data(data | {"env": {"rewards": [reward]}}).describe_step()
    '16 prompts x 8 rollouts = 128 rollouts per step; 4 updates per step; 5 steps = 20 updates'
    """
    known = [f.name for f in fields(Recipe)]
    for name in data:
        if name not in known:
            hint = explain_option(name) or suggest_field(name, _example_recipe())
            raise ConfigError(f"{name}: there is no such field of a recipe. {hint}")
    for name, example in EXAMPLES.items():
        if name not in data:
            raise ConfigError(f"{name}: it is missing. Write {example}.")
    return make_component(Recipe, {name: _value(name, x) for name, x in data.items()}, "")


def _example_recipe() -> Recipe:
    """A recipe with the default types, whose fields are candidates for a correct spelling."""
    rewards = (RewardTerm("correct", ExactMatch()),)
    return Recipe(CausalLM("model"), SingleTurn(rewards), DatasetTasks("tasks.jsonl"))


def _value(name: str, data: Any) -> Any:
    """The data of a field of a recipe, with its component made if the field has a notation."""
    if name == "method":
        return method_from_data(data)
    if name in ("tasks", "eval_tasks") and isinstance(data, str):
        return _parsed(name, parse_task_source, data)
    if name in DEFAULT_TYPES and isinstance(data, Mapping) and TYPE_KEY not in data:
        return make_component(DEFAULT_TYPES[name], data, name)
    return data


def method_from_data(data: Any) -> Method:
    """A method from its text, or from a table with its name, its arguments and its slots.

    >>> method_from_data({"type": "dapo", "max_length": 64, "overlong_buffer": 16,
    ...     "sampler": {"group_size": 4}}).sampler
    GroupSampler(group_size=4)
    """
    if isinstance(data, str):
        return _parsed("method", parse_method, data)
    if not isinstance(data, Mapping):
        raise ConfigError(f'method: {data!r} does not fit. Allowed: "grpo", or a table [method].')
    slots = {name: value for name, value in data.items() if name in SLOTS}
    arguments = {n: value for n, value in data.items() if n not in (*SLOTS, TYPE_KEY)}
    name = data.get(TYPE_KEY, "Method")
    if not isinstance(name, str):
        raise ConfigError(f"method.type: {name!r} does not fit. Allowed: a string.")
    if name == "Method":
        return make_component(Method, {**slots, **arguments}, "method", Method())
    call = ", ".join(f"{key}={_literal(value)!r}" for key, value in arguments.items())
    text = f"{name}({call})" if arguments else name
    return make_component(Method, slots, "method", _parsed("method", parse_method, text))


def _literal(value: Any) -> Any:
    return tuple(map(_literal, value)) if isinstance(value, list) else value


def _parsed(field: str, parser: Callable[[str], Any], text: str) -> Any:
    """The parsed text; error messages begin with the field."""
    try:
        return parser(text)
    except ConfigError as error:
        message = str(error).removeprefix(f"{field}: ")
        raise ConfigError(f"{field}: {message}") from error
