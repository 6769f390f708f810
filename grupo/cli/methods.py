"""Commands about methods: `grupo methods list`, `search`, `suggest` and `check`."""

import json
import sys
from typing import Annotated

import typer
from typer import Argument, Option

from grupo.cli.single_value import SingleValueCommand
from grupo.cli.suggest import suggest
from grupo.util.console import out, print_line

JsonOption = Annotated[bool, Option("--json", help="Print JSON.")]
HELP = (
    "List the methods, search them by topic, suggest three, or check one. `grupo methods NAME` and"
    " `grupo methods TOPIC` are `grupo methods search`."
)
methods_app = typer.Typer(no_args_is_help=True, help=HELP)


methods_app.command("suggest", cls=SingleValueCommand)(suggest)


@methods_app.command("list", cls=SingleValueCommand)
def list_methods(
    name: Annotated[
        str,
        Argument(metavar="NAME", help="A name, arXiv number or topic; all methods by default."),
    ] = "",
    tags: Annotated[
        list[str] | None,
        Option("--tag", metavar="TAG", help="Only methods with this tag; repeat it for several."),
    ] = None,
    as_json: JsonOption = False,
) -> None:
    """List the methods and the slots in which each differs from GRPO."""
    from grupo.catalogue.entries import methods, tagged_entries
    from grupo.catalogue.pages import methods_table
    from grupo.catalogue.search import find_entries

    named = find_entries(name) if name else methods()
    entries = tagged_entries(named, tags or ())
    if as_json:
        return print_line(json.dumps([entry.to_data() for entry in entries], indent=1))
    out.print(methods_table(entries) if entries else "No method has all these tags.")


@methods_app.command(cls=SingleValueCommand)
def search(
    words: Annotated[
        list[str], Argument(metavar="TOPIC", help="A topic such as kl, or a name, in words.")
    ],
    as_json: JsonOption = False,
) -> None:
    """Search names, first lines, tags and paper titles; a name prints its whole entry."""
    from grupo.catalogue.search import is_known, search_topic, topics_table

    text = " ".join(words)
    if as_json or is_known(text):
        return list_methods(text, as_json=as_json)
    out.print(topics_table(search_topic(text)))


@methods_app.command(cls=SingleValueCommand)
def check(
    address: Annotated[str, Argument(metavar="METHOD", help="path.py:name, or a method's name.")],
) -> None:
    """Check the properties of a method and train it for seconds; exit code 1 if a check fails."""
    from grupo.catalogue.parse import find_paper, parse_method
    from grupo.catalogue.search import find_entry
    from grupo.evidence.exact.measure import bias_summary
    from grupo.testing.smoke import report_card

    # by name a method has the arguments of its documentation page
    example = find_entry(address).example if address.isidentifier() else address
    method = parse_method(example)
    results = []
    for result in report_card(method, paper=find_paper(example)):
        print_line(f"{result.status:6}  {result.name}: {result.message}")
        results.append(result)
    print_line(f"{'':6}  angle to the gradient of the expected reward: {bias_summary(method)}")
    num_held = sum(result.status == "passed" for result in results)
    num_failed = sum(not result.passed for result in results)
    print_line(f"{num_held} properties hold, {num_failed} failed")
    sys.exit(bool(num_failed))
