"""One HTML file, which asks nobody for anything: its style, its script and its data are in it."""

import json
from base64 import b64encode
from collections.abc import Iterator, Sequence
from functools import cache
from hashlib import sha256
from importlib.resources import files
from pathlib import Path
from typing import Any

from grupo.core.errors import ConfigError
from grupo.report.html.payload import base64_gzip_json, open_runs, run_payload
from grupo.report.html.run_view import RunView

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
GENERATOR_TAG = '<meta name="generator" content="grupo">'


def write_html_report(folders: Sequence[Path], out: Path) -> Path:
    """Write the page of some runs; the same runs, the same bytes.

    Raises `ConfigError` for what holds no run, and for a file that is no such page and would be lost.
    """
    books = open_runs(folders)
    if out.is_dir() or (out.exists() and not _is_ours(out)):
        raise ConfigError(f"out: {str(out)!r} exists and is no report. Name another file.")
    try:
        with out.open("w", encoding="utf-8") as file:
            file.writelines(
                render_page(
                    _page_payload(books), connect_src="'none'", extra_elements=_step_elements(books)
                )
            )
    except OSError as error:
        raise ConfigError(f"out: {str(out)!r}: {error.strerror}.") from error
    return out


def render_page(
    data: Any, *, connect_src: str, extra_elements: Iterator[str] = iter(())
) -> Iterator[str]:
    """The page in pieces; `connect` is whom its script may ask, as a Content-Security-Policy says.

    Only what is in `files` here is run or applied: the policy names it by its hash.
    """
    licence = f"/*\n{_read('vendor/uPlot.LICENSE')}*/\n"  # goes with every copy
    style, script = licence + _joined_files(STYLES), licence + _joined_files(SCRIPTS)
    allowed = (
        f"default-src 'none'; script-src {_csp_hash(script)}; style-src {_csp_hash(style)}; img-src data:;"
        f" connect-src {connect_src}; base-uri 'none'; form-action 'none'"
    )
    before, after = _read("index.html").split("<!--data-->")
    yield (
        before.replace("<!--policy-->", allowed)
        .replace("<!--mark-->", GENERATOR_TAG)
        .replace("<!--style-->", f"<style>{style}</style>")
    )
    yield f'<script type="application/json" id="data">{_escaped_json(data)}</script>\n'
    yield from extra_elements
    yield after.replace("<!--script-->", f"<script>{script}</script>")


def _is_ours(file: Path) -> bool:
    with file.open(errors="replace") as text:
        return GENERATOR_TAG in text.read(2000)


def _page_payload(runs: Sequence[RunView]) -> Any:
    return {"live": False, "runs": [run_payload(book) for book in runs]}


def _step_elements(runs: Sequence[RunView]) -> Iterator[str]:
    """The groups of each step, packed apart so that only what is looked at is unpacked."""
    for run, book in enumerate(runs):
        for step in book.journal_index.groups:
            packed = base64_gzip_json(book.groups(step))
            yield f'<script type="text/plain" id="step-{run}-{step}">{packed}</script>\n'


def _escaped_json(data: Any) -> str:
    """JSON that ends no element: letters of other scripts and < are written as escapes."""
    return json.dumps(data, separators=(",", ":")).replace("<", "\\u003c")


def _csp_hash(text: str) -> str:
    return f"'sha256-{b64encode(sha256(text.encode()).digest()).decode()}'"


@cache
def _joined_files(names: Sequence[str]) -> str:
    return "\n".join(map(_read, names))


def _read(name: str) -> str:
    return files("grupo.report.html").joinpath("static", name).read_text(encoding="utf-8")
