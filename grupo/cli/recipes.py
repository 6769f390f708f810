"""`grupo recipes`: the recipes that come with the package."""

import json
from typing import Annotated

from typer import Argument, Option

from grupo.util.console import print_line


def recipes(
    words: Annotated[
        list[str] | None,
        Argument(metavar="WORD …", help="Only recipes whose path or text has all these words."),
    ] = None,
    as_json: Annotated[bool, Option("--json", help="Print JSON.")] = False,
) -> None:
    """List the recipes that come with the package, each with the commands that run it."""
    from dataclasses import asdict

    from grupo.catalogue.recipes import shipped_recipes
    from grupo.util.errors import ConfigError
    from grupo.util.shipped_recipes import recipes_folder

    folder = recipes_folder()
    files = [
        file
        for file in shipped_recipes(folder)
        if all(word.lower() in f"{file.file} {file.content}".lower() for word in words or ())
    ]
    if not files:
        raise ConfigError(f"{' '.join(words or ())!r} is in no recipe. `grupo recipes` lists all.")
    if as_json:
        return print_line(json.dumps([asdict(file) for file in files], indent=1))
    for file in files:
        print_line(f"{file.file}\n  {file.content}")
        for command in file.commands:
            print_line(f"  $ {command}")
    print_line(
        f"The files are in {folder}. `grupo` finds recipes/… there from any folder; copy the folder"
        " to change a recipe, or to run a line that begins with `python`."
    )
