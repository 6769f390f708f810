"""The commands of `grupo`. Invalid input ends in one message on standard error and exit code 2."""

import os
import sys
from collections.abc import Sequence
from io import TextIOWrapper

import typer

from grupo.cli.compare import compare
from grupo.cli.inspect import check, doctor, evaluate, export, rollouts
from grupo.cli.methods import methods_app
from grupo.cli.recipe_help import RecipeCommand
from grupo.cli.report import report, watch
from grupo.cli.train import make_toy_model, resume, train
from grupo.core.console import print_error
from grupo.core.errors import ConfigError, suggest
from grupo.core.exit_codes import EXIT_UNEXPECTED, error_message, exit_code

HELP_FLAGS = ("--help", "-h")
COMMANDS = {
    "train": train,
    "resume": resume,
    "compare": compare,
    "make-toy-model": make_toy_model,
    "eval": evaluate,
    "rollouts": rollouts,
    "doctor": doctor,
    "check": check,
    "report": report,
    "watch": watch,
    "export": export,
}
COMMAND_NAMES = (*COMMANDS, "methods")
METHODS_COMMANDS = ("list", "check")
COMMANDS_WITH_FIELDS = ("train", "resume", "compare", "eval")  # fields of a recipe are options

app = typer.Typer(
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,  # brackets in help texts are literal
    context_settings={"help_option_names": list(HELP_FLAGS)},
    help="Group-relative policy optimisation. Without a command it trains.",
)
for name, command in COMMANDS.items():
    app.command(
        name,
        cls=RecipeCommand if name == "train" else None,
        context_settings={"ignore_unknown_options": name in COMMANDS_WITH_FIELDS},
    )(command)
app.add_typer(methods_app, name="methods")


def main(arguments: Sequence[str] | None = None) -> None:
    """Run a command line; `sys.argv` by default."""
    # brief spinning of idle threads: as fast alone, several times faster where cores are shared
    os.environ.setdefault("GOMP_SPINCOUNT", "10000")
    for stream in (sys.stdout, sys.stderr):  # generated text may not fit the encoding
        if isinstance(stream, TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")
    arguments = sys.argv[1:] if arguments is None else arguments
    try:
        app(_with_default_command(list(arguments)), prog_name="grupo")
    except Exception as error:
        if (code := exit_code(error)) == EXIT_UNEXPECTED:
            raise
        print_error(f"grupo: {error_message(error)}")
        sys.exit(code)


def _with_default_command(arguments: list[str]) -> list[str]:
    """The arguments, beginning with a command and, after `methods`, a second one.

    Options and addresses of recipes are for `train`, names of methods for `methods list`.
    """
    first = arguments[0] if arguments else ""
    if first == "methods" and (*arguments, "")[1] not in (*METHODS_COMMANDS, *HELP_FLAGS):
        return ["methods", "list", *arguments[1:]]
    if first in (*COMMAND_NAMES, *HELP_FLAGS):
        return arguments
    if first and not first.startswith("-") and ":" not in first and not first.endswith(".py"):
        raise ConfigError(f"{first!r} is no command. {suggest(first, COMMAND_NAMES)}")
    return ["train", *arguments]
