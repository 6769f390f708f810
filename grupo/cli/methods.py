"""grupo methods, and grupo method check."""

import json
import sys
from typing import Annotated

import typer
from typer import Argument, Option

from grupo.cli.console import out, say

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

    entries = [catalogue.find(which)] if which else catalogue.methods()
    if as_json:
        return say(json.dumps([entry.to_data() for entry in entries], indent=1))
    out.print(catalogue.table(entries))


@method_app.command()
def check(
    address: Annotated[str, Argument(metavar="METHOD", help="path.py:name, or a method's name.")],
) -> None:
    """Hold a method against the laws; exit code 1 if it breaks one."""
    from grupo import laws
    from grupo.catalogue import find, parse

    named = address.isidentifier()  # with the arguments its page shows
    card = laws.check(find(address).method if named else parse(address))
    for name, said, broken in card:
        say(f"{'BROKEN' if broken else 'holds '}  {name}: {broken or said}")
    say(f"{sum(not broken for *_, broken in card)} of {len(card)} laws hold")
    sys.exit(any(broken for *_, broken in card))


@method_app.callback()
def _one() -> None:
    """One method."""
