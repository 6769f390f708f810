"""Split the arguments of a command into a recipe and the fields that change it."""

from collections.abc import Sequence

from grupo.cli.single_value import option_given_twice
from grupo.config.option_hints import explain_option
from grupo.util.errors import ConfigError

FLAGS = ("tensorboard", "trackio", "wandb", "dry-run")
FIELD_ALIASES = {"steps": "max_steps"}  # options with another name than their field
Fields = tuple[tuple[str, str], ...]  # dotted names of fields with the text of their values


def split_arguments(arguments: Sequence[str]) -> tuple[str, Fields]:
    """Split arguments into the positional one and the fields, which are options unknown to typer.

    >>> split_arguments(["--steps", "5", "recipe.py:TINY", "--policy.max-new-tokens=64"])
    ('recipe.py:TINY', (('max_steps', '5'), ('policy.max_new_tokens', '64')))
    """
    positional: list[str] = []
    fields: list[tuple[str, str]] = []
    remaining = list(arguments)
    while remaining:
        argument = remaining.pop(0)
        if argument.startswith("-") and not argument.startswith("--"):
            name = argument.lstrip("-")
            raise ConfigError(
                f"{argument!r}: options begin with two hyphens. Write --{name} VALUE; `grupo train"
                " --help` lists them."
            )
        if not argument.startswith("--"):
            _check_positional(argument)
            positional.append(argument)
            continue
        option, equals, value = argument.removeprefix("--").partition("=")
        if not equals:
            if not remaining or remaining[0].startswith("--"):
                hint = explain_option(option) or f"Write {argument} VALUE."
                raise ConfigError(f"{argument}: it has no value. {hint}")
            value = remaining.pop(0)
        field = option.replace("-", "_")
        field = FIELD_ALIASES.get(field, field)
        if field in dict(fields):
            raise option_given_twice(argument.partition("=")[0])
        fields.append((field, value))
    if len(positional) > 1:
        raise ConfigError(
            f"{positional[1]!r}: one argument too many after {positional[0]!r}. Quote values that"
            " contain spaces, and write fields as --FIELD VALUE."
        )
    return "".join(positional), tuple(fields)


def _check_positional(argument: str) -> None:
    """Raise for an argument that is no recipe: an option of verl, or the value of a flag."""
    name, equals, value = argument.partition("=")
    if equals and (explanation := explain_option(name, value)):
        raise ConfigError(f"{argument!r}: grupo has no such option. {explanation}")
    if argument.lower() in ("true", "false"):
        flags = ", ".join(f"--{flag}" for flag in FLAGS)
        raise ConfigError(f"{argument!r} is no recipe. Flags have no value: {flags}.")
