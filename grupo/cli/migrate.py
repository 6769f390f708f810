"""The command `grupo migrate`."""

from typing import Annotated

from typer import Argument

from grupo.util.console import print_error, print_line


def migrate(
    file: Annotated[
        str, Argument(metavar="FILE", help="A script or configuration of another library.")
    ],
) -> None:
    """Print a recipe file for a script of TRL or OpenRLHF, or for verl's or prime-rl's options.

    The file is read, never executed. Comments name what was not translated, and why.
    """
    from grupo.cli.build_recipe import parse_option
    from grupo.config.migrate import migrate_file

    migration = parse_option(migrate_file, "file", file)
    print_line(migration.text)
    if count := len(migration.untranslated):
        print_error(f"{count} options of {migration.library} are not translated: see the comments.")
