"""Verbs, and what becomes of bad input: one message on standard error and exit code 2."""

import sys
from collections.abc import Sequence
from io import TextIOWrapper

import typer

from grupo.cli.console import err
from grupo.cli.methods import method_app, methods
from grupo.cli.reading import doctor, evaluate, export, rollouts
from grupo.cli.training import grow, resume, train
from grupo.errors import Refused

OPEN = {"ignore_unknown_options": True}  # any field of a recipe is an option

app = typer.Typer(
    add_completion=False,
    pretty_exceptions_enable=False,
    help="Group-relative policy optimisation. Without a verb: train.",
)
app.command(context_settings=OPEN)(train)
app.command(context_settings=OPEN)(resume)
app.command()(grow)
app.command("eval", context_settings=OPEN)(evaluate)
app.command()(rollouts)
app.command()(doctor)
app.command()(export)
app.command()(methods)
app.add_typer(method_app, name="method")

VERBS = {"train", "resume", "grow", "eval", "rollouts", "doctor", "export", "methods", "method"}


def main(arguments: Sequence[str] | None = None) -> None:
    """Run a command line."""
    for stream in (sys.stdout, sys.stderr):  # what a model says may not fit the terminal
        if isinstance(stream, TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")
    given = list(sys.argv[1:] if arguments is None else arguments)
    if not given or given[0] not in {*VERBS, "--help"}:
        given = ["train", *given]
    try:
        app(given)
    except Refused as refusal:
        err.print(f"grupo: {refusal}", style="red", markup=False, highlight=False, soft_wrap=True)
        sys.exit(2)
    except KeyboardInterrupt:
        err.print("Stopped. `grupo resume RUN` goes on from the last checkpoint.", markup=False)
        sys.exit(130)
