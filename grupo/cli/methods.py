"""grupo methods, and grupo method check."""

import json
import sys
from typing import Annotated

import typer
from typer import Argument, Option

from grupo.core.console import out, say

Json = Annotated[bool, Option("--json", help="As data.")]
method_app = typer.Typer(no_args_is_help=True, help="One method.")


def methods(
    which: Annotated[
        str, Argument(metavar="NAME", help="A name or an arXiv number; all by default.")
    ] = "",
    as_json: Json = False,
) -> None:
    """What each method changes against GRPO's default."""
    from grupo import catalogue

    entries = catalogue.search(which) if which else catalogue.methods()
    if as_json:
        return say(json.dumps([entry.to_data() for entry in entries], indent=1))
    out.print(catalogue.table(entries))


@method_app.command()
def check(
    address: Annotated[str, Argument(metavar="METHOD", help="path.py:name, or a method's name.")],
) -> None:
    """Hold a method against the laws and train it for seconds; exit code 1 if it breaks a law."""
    from grupo.catalogue import find, parse
    from grupo.testing.smoke import card

    named = address.isidentifier()  # with the arguments its page shows
    lines = []
    for line in card(find(address).method if named else parse(address)):
        say(f"{line.word:6}  {line.name}: {line.found}")
        lines.append(line)
    held = sum(line.word == "holds" for line in lines)
    broken = sum(not line.good for line in lines)
    say(f"{held} laws hold, {broken} broken")
    sys.exit(bool(broken))


@method_app.callback()
def _one() -> None:
    """One method."""
