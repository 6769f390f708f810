"""grupo methods, and grupo method check."""

import json
import sys
from typing import Annotated

import typer
from typer import Argument, Option

from grupo.core.console import out, print_line

JsonOption = Annotated[bool, Option("--json", help="As data.")]
method_app = typer.Typer(no_args_is_help=True, help="One method.")


def methods(
    name: Annotated[
        str, Argument(metavar="NAME", help="A name or an arXiv number; all by default.")
    ] = "",
    as_json: JsonOption = False,
) -> None:
    """What each method changes against GRPO's default."""
    from grupo import catalogue

    entries = catalogue.search_entries(name) if name else catalogue.methods()
    if as_json:
        return print_line(json.dumps([entry.to_data() for entry in entries], indent=1))
    out.print(catalogue.methods_table(entries))


@method_app.command()
def check(
    address: Annotated[str, Argument(metavar="METHOD", help="path.py:name, or a method's name.")],
) -> None:
    """Hold a method against the laws and train it for seconds; exit code 1 if it breaks a law."""
    from grupo.catalogue import find_entry, parse_method
    from grupo.testing.smoke import report_card

    named = address.isidentifier()  # with the arguments its page shows
    lines = []
    for line in report_card(find_entry(address).method if named else parse_method(address)):
        print_line(f"{line.status:6}  {line.name}: {line.message}")
        lines.append(line)
    held = sum(line.status == "holds" for line in lines)
    broken = sum(not line.passed for line in lines)
    print_line(f"{held} laws hold, {broken} broken")
    sys.exit(bool(broken))


@method_app.callback()
def _method_group() -> None:
    """One method."""
