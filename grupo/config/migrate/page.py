"""The page docs/migrate.md: a table of options for each library."""

from collections.abc import Iterator
from itertools import groupby
from pathlib import Path

from grupo.config.option_hints import LIBRARIES, Library, OtherOption


def migration_page() -> str:
    """The page: the introduction, and a table for each library."""
    introduction = (Path(__file__).parent / "introduction.md").read_text(encoding="utf-8")
    return "\n".join([introduction, *(line for x in LIBRARIES for line in _section(x))]) + "\n"


def _section(library: Library) -> Iterator[str]:
    yield f"## {library.name}"
    yield f"\nNames and defaults are those of {library.source}.\n"
    yield f"| {library.name} | default | grupo | remark |"
    yield "|---|---|---|---|"
    for option in library.options:
        if option.answer:
            yield _row(library, option)
    for is_neutral, title in (
        (False, "Without counterpart"),
        (True, "Without counterpart, and without effect on the result"),
    ):
        yield f"\n{title}:\n"
        left = [o for o in library.options if not o.answer and o.is_neutral == is_neutral]
        for note, options in groupby(left, key=lambda option: option.note):
            names = ", ".join(f"`{option.name}`" for option in options)
            yield f"* {note}: {names}"
    yield ""


def _row(library: Library, option: OtherOption) -> str:
    name = f"{library.prefix}{option.name}"
    cells = (f"`{name}`", option.default, f"`{option.grupo_option()}`", option.note)
    return f"| {' | '.join(cell.replace('|', chr(92) + '|') for cell in cells)} |"
