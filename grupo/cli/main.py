"""The commands of `grupo`. Invalid input ends in one message on standard error and exit code 2."""

import gc
import os
import sys
from collections.abc import Sequence
from importlib import metadata
from io import TextIOWrapper
from typing import Annotated, Any

import typer
from typer.core import TyperGroup

from grupo.cli.ask import ask
from grupo.cli.compare import compare
from grupo.cli.inspect import check, doctor, evaluate, export, rollouts
from grupo.cli.launch import launch_app
from grupo.cli.methods import methods_app
from grupo.cli.migrate import migrate
from grupo.cli.papers import papers
from grupo.cli.ranks import ranks
from grupo.cli.recipe_help import FieldsCommand, RecipeCommand
from grupo.cli.recipes import recipes
from grupo.cli.report import report, watch
from grupo.cli.serve import serve
from grupo.cli.simulate import simulate
from grupo.cli.single_value import SingleValueCommand
from grupo.cli.survey import survey
from grupo.cli.train import make_toy_model, resume_command, train_command
from grupo.cli.unknown_command import unknown_command
from grupo.distributed.start import is_rank_0
from grupo.util.console import print_error, print_line
from grupo.util.errors import ConfigError
from grupo.util.exit_codes import (
    EXIT_STOPPED,
    EXIT_UNEXPECTED,
    CommandError,
    error_message,
    exit_code,
)
from grupo.util.importing import raised_in_user_file
from grupo.util.limits import ARGUMENT_LENGTH
from grupo.util.loader_errors import describe_error
from grupo.util.terminal_text import printable_message
from grupo.util.user_paths import is_recipe_file

UsageError: Any = typer.BadParameter.__base__  # typer exports the derived class only
HELP_FLAGS = ("--help", "-h")
FLAGS = (*HELP_FLAGS, "--version", "--install-completion", "--show-completion")
COMMANDS = {
    "train": train_command,
    "resume": resume_command,
    "compare": compare,
    "make-toy-model": make_toy_model,
    "ask": ask,
    "eval": evaluate,
    "rollouts": rollouts,
    "doctor": doctor,
    "check": check,
    "report": report,
    "watch": watch,
    "export": export,
    "simulate": simulate,
    "survey": survey,
    "migrate": migrate,
    "papers": papers,
    "recipes": recipes,
    "serve": serve,
    "ranks": ranks,
}
COMMAND_NAMES = (*COMMANDS, "methods", "launch")
METHODS_COMMANDS = ("list", "check", "suggest", "search")
COMMANDS_WITH_FIELDS = (
    "train",
    "resume",
    "compare",
    "eval",
    "survey",
)  # fields of a recipe are options


class PrintableErrors(TyperGroup):
    """Commands whose usage errors spell control characters out, as all other messages do."""

    def invoke(self, ctx: Any) -> Any:
        try:
            return super().invoke(ctx)
        except UsageError as error:
            error.message = printable_message(error.message)
            raise


app = typer.Typer(
    cls=PrintableErrors,
    invoke_without_command=True,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,  # brackets in help texts are literal
    context_settings={"help_option_names": list(HELP_FLAGS)},
)


@app.callback()
def print_version(
    version: Annotated[
        bool, typer.Option("--version", help="Print the version and exit.", is_eager=True)
    ] = False,
) -> None:
    """Group-relative policy optimisation. Without a command it trains."""
    if version:
        print_line(f"grupo {metadata.version('grupo')}")
        raise typer.Exit


for name, command in COMMANDS.items():
    takes_fields = name in COMMANDS_WITH_FIELDS
    fields_class = RecipeCommand if name == "train" else FieldsCommand
    app.command(
        name,
        cls=fields_class if takes_fields else SingleValueCommand,
        context_settings={"ignore_unknown_options": takes_fields},
    )(command)
app.add_typer(methods_app, name="methods")
app.add_typer(launch_app, name="launch")


def main(arguments: Sequence[str] | None = None) -> None:
    """Run a command line; `sys.argv` by default."""
    # brief spinning of idle threads: as fast alone, several times faster where cores are shared
    os.environ.setdefault("GOMP_SPINCOUNT", "10000")
    # torch and transformers create 400,000 objects that stay: with the default of 700, commands
    # start 10 to 15 % more slowly
    gc.set_threshold(10_000)
    for stream in (sys.stdout, sys.stderr):  # generated text may not fit the encoding
        if isinstance(stream, TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")
    arguments = sys.argv[1:] if arguments is None else arguments
    try:
        _check_arguments(arguments)
        app(_with_default_command(list(arguments)), prog_name="grupo", obj=list(arguments))
    except Exception as error:
        code = exit_code(error)
        message = error_message(error)
        if code == EXIT_UNEXPECTED and not isinstance(error, CommandError):
            if not raised_in_user_file(error):
                raise
            code = EXIT_STOPPED
            message = f"your code raised {describe_error(error)}. Mend that line."
        if is_rank_0() or not isinstance(error, ConfigError):  # other ranks find the same error
            print_error(f"grupo: {message}")
        sys.exit(code)


def _check_arguments(arguments: Sequence[str]) -> None:
    """Raise `ConfigError` for arguments that no option and no field can hold."""
    for argument in arguments:
        option, _, _ = argument.partition("=")
        if len(argument) > ARGUMENT_LENGTH.maximum:
            raise ConfigError(f"{option[:80]!r}… is too long. Allowed: {ARGUMENT_LENGTH.allowed}.")
        if "\0" in argument:
            raise ConfigError(f"{argument!r} contains the character NUL.")
        try:
            os.fsencode(argument)  # bytes of file names that are no text are allowed
        except UnicodeEncodeError as error:
            raise ConfigError(f"{argument!r} is no text: {error.reason}.") from error


def _with_default_command(arguments: list[str]) -> list[str]:
    """The arguments, beginning with a command and, after `methods`, a second one.

    Options and addresses of recipes are for `train`, names and topics for `methods search`.
    """
    first = arguments[0] if arguments else ""
    if first == "methods" and (*arguments, "")[1] not in (*METHODS_COMMANDS, *HELP_FLAGS):
        is_topic = any(not argument.startswith("-") for argument in arguments[1:2])
        return ["methods", "search" if is_topic else "list", *arguments[1:]]
    if first in (*COMMAND_NAMES, *FLAGS):
        return arguments
    if first and not first.startswith("-") and not _is_recipe_address(first):
        raise unknown_command(first, COMMAND_NAMES)
    return ["train", *arguments]


def _is_recipe_address(argument: str) -> bool:
    return ":" in argument or argument.endswith(".py") or is_recipe_file(argument)
