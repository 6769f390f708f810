"""Snippets of Markdown pages: fenced blocks, and the command lines of `grupo` in them."""

import re
import shlex
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import typer
from typer.core import TyperGroup

from grupo.cli.build_recipe import RecipeArgs
from grupo.cli.fields import split_arguments
from grupo.cli.main import _with_default_command, app
from grupo.cli.pipeline import find_pipeline, with_fields

FENCE = re.compile(r"^```(?P<language>\w*)\n(?P<code>.*?)^```", re.DOTALL | re.MULTILINE)
COMMAND = re.compile(r"^(?:\$ )?grupo(?: (?P<arguments>.*))?$")
REDIRECTION = re.compile(r"\s+>\s+\S+")
SHELL_LANGUAGES = ("", "console", "bash", "sh")


@dataclass(frozen=True)
class Command:
    """A command line of a page.

    Args:
        arguments: Its arguments after `grupo`.
        message: The error that the page shows below it; "" if it succeeds.
    """

    arguments: tuple[str, ...]
    message: str = ""

    def __str__(self) -> str:
        return shlex.join(("grupo", *self.arguments))


def fenced_blocks(text: str, *languages: str) -> list[str]:
    """The code of the fenced blocks in some languages."""
    return [m["code"] for m in FENCE.finditer(text) if m["language"] in languages]


def commands(text: str) -> Iterator[Command]:
    """The command lines of `grupo` in a page."""
    for block in fenced_blocks(text, *SHELL_LANGUAGES):
        lines = block.replace("\\\n", " ").splitlines()
        for line, following in zip(lines, [*lines[1:], ""], strict=True):
            if (match := COMMAND.match(line)) and "--" not in line.partition(" ")[0]:
                arguments = REDIRECTION.sub("", match["arguments"] or "")
                message = following.removeprefix("grupo: ") if following[:7] == "grupo: " else ""
                yield Command(tuple(shlex.split(arguments, comments=True)), message)


def validate(arguments: Sequence[str]) -> None:
    """Parse a command line as `grupo` does, without running it.

    Options are checked by the command's own parser, and fields of a recipe by applying them.

    Raises:
        ConfigError: A field, a value or a method is not allowed.
        UsageError: An option or an argument is not allowed.
    """
    command = typer.main.get_command(app)
    if "--version" in arguments:
        return
    name, rest = "grupo", _with_default_command(list(arguments))
    context = command.make_context(name, rest)
    while isinstance(command, TyperGroup):
        rest = [*context._protected_args, *context.args]
        name, command, rest = command.resolve_command(context, rest)
        assert name
        assert command
        context = command.make_context(name, rest, parent=context)
    _validate_fields(name, context.params)


def _validate_fields(command: str, params: dict) -> None:
    """Apply the fields of a recipe among the arguments of a command."""
    if command not in ("train", "compare"):
        return
    address, fields = split_arguments(params["arguments"] or ())
    if command == "train" and (pipeline := find_pipeline(address)):
        with_fields(pipeline, fields)
        return
    rewards = tuple(params["reward"] or ())
    methods = params["method"] if command == "compare" else [params["method"]]
    tasks = "" if command == "compare" else params["tasks"]
    shared = {"recipe": address, "tasks": tasks, "rewards": rewards, "fields": fields}
    for method in methods or [""]:
        is_named = re.match(r"\w+=", method)
        call = method.partition("=")[2] if is_named else method
        RecipeArgs(model=params["model"], eval_tasks=params["eval_tasks"], method=call, **shared)()
