"""One HTML file, which asks nobody for anything: its style, its script and its data are in it."""

import json
from base64 import b64encode
from collections.abc import Iterator, Sequence
from functools import cache
from hashlib import sha256
from importlib.resources import files
from pathlib import Path
from typing import Any

from grupo.core.errors import Refused
from grupo.report.html.payload import embedded, opened, told
from grupo.report.html.run_view import Book

STYLES = ("vendor/uPlot.min.css", "page.css")
SCRIPTS = (
    "vendor/uPlot.iife.min.js",
    "dom.js",
    "numbers.js",
    "source.js",
    "charts.js",
    "summary.js",
    "curves.js",
    "account.js",
    "calls.js",
    "actions.js",
    "tree.js",
    "groups.js",
    "group.js",
    "page.js",
)
MARK = '<meta name="generator" content="grupo">'


def report(folders: Sequence[Path], out: Path) -> Path:
    """Write the page of some runs; the same runs, the same bytes.

    Raises `Refused` for what holds no run, and for a file that is no such page and would be lost.
    """
    books = opened(folders)
    if out.is_dir() or (out.exists() and not _is_ours(out)):
        raise Refused(f"out: {str(out)!r} exists and is no report. Name another file.")
    try:
        with out.open("w", encoding="utf-8") as file:
            file.writelines(page(_data(books), connect="'none'", more=_steps(books)))
    except OSError as error:
        raise Refused(f"out: {str(out)!r}: {error.strerror}.") from error
    return out


def page(data: Any, *, connect: str, more: Iterator[str] = iter(())) -> Iterator[str]:
    """The page in pieces; `connect` is whom its script may ask, as a Content-Security-Policy says.

    Only what is in `files` here is run or applied: the policy names it by its hash.
    """
    licence = f"/*\n{_read('vendor/uPlot.LICENSE')}*/\n"  # goes with every copy
    style, script = licence + _text(STYLES), licence + _text(SCRIPTS)
    allowed = (
        f"default-src 'none'; script-src {_hash(script)}; style-src {_hash(style)}; img-src data:;"
        f" connect-src {connect}; base-uri 'none'; form-action 'none'"
    )
    before, after = _read("index.html").split("<!--data-->")
    yield (
        before.replace("<!--policy-->", allowed)
        .replace("<!--mark-->", MARK)
        .replace("<!--style-->", f"<style>{style}</style>")
    )
    yield f'<script type="application/json" id="data">{_safe(data)}</script>\n'
    yield from more
    yield after.replace("<!--script-->", f"<script>{script}</script>")


def _is_ours(file: Path) -> bool:
    with file.open(errors="replace") as text:
        return MARK in text.read(2000)


def _data(books: Sequence[Book]) -> Any:
    return {"live": False, "runs": [told(book) for book in books]}


def _steps(books: Sequence[Book]) -> Iterator[str]:
    """The groups of each step, packed apart so that only what is looked at is unpacked."""
    for run, book in enumerate(books):
        for step in book.shelf.groups:
            packed = embedded(book.groups(step))
            yield f'<script type="text/plain" id="step-{run}-{step}">{packed}</script>\n'


def _safe(data: Any) -> str:
    """JSON that ends no element: letters of other scripts and < are written as escapes."""
    return json.dumps(data, separators=(",", ":")).replace("<", "\\u003c")


def _hash(text: str) -> str:
    return f"'sha256-{b64encode(sha256(text.encode()).digest()).decode()}'"


@cache
def _text(names: Sequence[str]) -> str:
    return "\n".join(map(_read, names))


def _read(name: str) -> str:
    return files("grupo.report.html").joinpath("static", name).read_text(encoding="utf-8")
