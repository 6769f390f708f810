"""The HTML report as one self-contained file: style, script and data are embedded."""

import json
import re
from base64 import b64encode
from collections.abc import Iterator, Sequence
from functools import cache
from hashlib import sha256
from importlib.resources import files
from pathlib import Path
from typing import Any

from grupo.report.html.payload import open_runs, packed_text, run_payload
from grupo.report.html.run_view import RunView
from grupo.util.errors import ConfigError

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
    "media.js",
    "boxes.js",
    "responses.js",
    "tree.js",
    "groups.js",
    "group.js",
    "page.js",
)
DIGEST = re.compile(r'"digest":\s?"([0-9a-f]{32})"')  # of a reference to media
GENERATOR_TAG = '<meta name="generator" content="grupo">'


def write_html_report(folders: Sequence[Path], out: Path) -> Path:
    """Write the HTML report of one or several runs; the same runs give the same bytes.

    Args:
        folders: the folders of the runs.
        out: the file to write; an earlier report is overwritten.

    Raises:
        ConfigError: a folder holds no run, or `out` exists and is not a report.
    """
    if out.suffix.lower() not in (".html", ".htm"):
        raise ConfigError(f"out: {str(out)!r}. Allowed: a file that ends in .html.")
    if not out.parent.is_dir():
        raise ConfigError(
            f"out: {str(out)!r} is in a folder that does not exist. Name another file."
        )
    runs = open_runs(folders)
    if out.is_dir() or (out.exists() and not _is_report(out)):
        raise ConfigError(f"out: {str(out)!r} exists and is not a report. Name another file.")
    page = render_page(
        _page_payload(runs), connect_src="'none'", extra_elements=_group_elements(runs)
    )
    try:
        with out.open("w", encoding="utf-8") as file:
            file.writelines(page)
    except OSError as error:
        raise ConfigError(f"out: {str(out)!r}: {error.strerror}.") from error
    return out


def render_page(
    data: Any, *, connect_src: str, extra_elements: Iterator[str] = iter(())
) -> Iterator[str]:
    """The page as a sequence of strings.

    Args:
        data: the JSON payload of the page.
        connect_src: the servers that the script may query, as in a Content-Security-Policy.
        extra_elements: HTML elements to insert after the script, which runs before they are loaded.
    """
    before, after = _read("index.html").split("<!--data-->\n<!--script-->\n")
    yield (
        before.replace("<!--policy-->", content_security_policy(connect_src))
        .replace("<!--mark-->", GENERATOR_TAG)
        .replace("<!--style-->", f"<style>{_embedded_text(STYLES)}</style>")
    )
    yield f'<script type="application/json" id="data">{_escaped_json(data)}</script>\n'
    yield f"<script>{_embedded_text(SCRIPTS)}</script>\n"
    yield from extra_elements
    yield after


def content_security_policy(connect_src: str) -> str:
    """The policy of the page: only its own script and style are allowed, by their hashes.

    Args:
        connect_src: the servers that the script may query.
    """
    return (
        f"default-src 'none'; script-src {_csp_hash(SCRIPTS)}; style-src {_csp_hash(STYLES)};"
        f" img-src data:; media-src data:; connect-src {connect_src}; base-uri 'none';"
        " form-action 'none'"
    )


def _is_report(file: Path) -> bool:
    with file.open(errors="replace") as text:
        return GENERATOR_TAG in text.read(2000)


def _page_payload(runs: Sequence[RunView]) -> Any:
    return {"live": False, "runs": [run_payload(run) for run in runs]}


def _group_elements(runs: Sequence[RunView]) -> Iterator[str]:
    """Each group in an element of its own, the newest first: the page unpacks what it shows.

    After those of a run, each of its images, videos and sounds once.
    """
    for index, run in enumerate(runs):
        digests: dict[str, None] = {}
        for step, groups in reversed(run.journal_index.groups.items()):
            for place in range(len(groups)):
                text = run.group_json(step, place) or "{}"
                digests |= dict.fromkeys(DIGEST.findall(text))
                packed = packed_text(text)
                name = f"group-{index}-{step}-{place}"
                yield f'<script type="text/plain" id="{name}">{packed}</script>\n'
        for digest in digests:
            if url := run.media_url(digest):
                yield f'<script type="text/plain" id="media-{index}-{digest}">{url}</script>\n'


def _escaped_json(data: Any) -> str:
    """JSON that cannot close its element: < and non-ASCII characters are escaped."""
    return json.dumps(data, separators=(",", ":")).replace("<", "\\u003c")


@cache
def _csp_hash(names: Sequence[str]) -> str:
    digest = sha256(_embedded_text(names).encode()).digest()
    return f"'sha256-{b64encode(digest).decode()}'"


@cache
def _embedded_text(names: Sequence[str]) -> str:
    """The files as one text, with the licence that goes with every copy."""
    licence = f"/*\n{_read('vendor/uPlot.LICENSE')}*/\n"
    return licence + "\n".join(map(_read, names))


def _read(name: str) -> str:
    return files("grupo.report.html").joinpath("static", name).read_text(encoding="utf-8")
