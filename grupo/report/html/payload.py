"""What a page is told of runs, as data."""

import gzip
import json
import os
from base64 import b64encode
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from grupo.core.errors import Refused
from grupo.report.html import recipe_source
from grupo.report.html.journal_index import Shelf
from grupo.report.html.metric_docs import define
from grupo.report.html.run_view import Book

LEDGER = ("tokens/", "time/")


def opened(folders: Sequence[Path]) -> list[Book]:
    """The runs in some folders, each once, read as far as they go.

    Raises `Refused` for a folder that is not there or holds no run, and where none may be read.
    """
    books = [Book(folder) for folder in dict.fromkeys(map(_checked, folders))]
    for book, name in zip(books, distinct([book.folder for book in books]), strict=True):
        book.name = name
        book.refresh()
    if all(book.closed for book in books):
        raise Refused(f"run: {str(folders[0])!r} is not yours to read: {books[0].closed}.")
    return books


def distinct(folders: Sequence[Path]) -> list[str]:
    """Names of folders, as much of their paths as tells them apart.

    >>> distinct([Path("/a/run"), Path("/b/run"), Path("/b/other")])
    ['a/run', 'b/run', 'other']
    """
    names = []
    for folder in folders:
        others = [other.parts for other in folders if other != folder]
        ends = (folder.parts[-depth:] for depth in range(1, len(folder.parts) + 1))
        apart = next(e for e in ends if e == folder.parts or all(o[-len(e) :] != e for o in others))
        names.append(str(Path(*apart)))
    return names


def told(book: Book, since: int = 0) -> dict[str, Any]:
    """A run as the page shows it, of its steps those after the first `since`."""
    shelf, steps = book.shelf, book.metrics[since:]
    names = list(dict.fromkeys(name for line in book.metrics for name in line))
    new = _new(shelf.groups, book.metrics, since)
    return {
        "name": book.name,
        "folder": _near(book.folder),
        "epoch": book.epoch,
        "problems": book.problems,
        "written": book.written,
        "summary": {n: x for n, x in book.summary.items() if n not in ("ledger", "held_out")},
        "held_out": book.scores,
        "ledger": ledger(book.metrics),
        "findings": book.findings,
        "recipe": recipe(book.recipe),
        "defined": {name: asdict(found) for name in names if (found := define(name))},
        "since": since,
        "metrics": {name: [line.get(name) for line in steps] for name in names},
        "index": {str(s): shelf.groups[s] for s in new},
        "prompts": {task: shelf.prompts[task] for task in _tasks(shelf, new)},
        "traced": bool(shelf.spans["actions"]),
    }


def recipe(data: Mapping[str, Any]) -> dict[str, Any]:
    """A recipe as code, field by field, its method beside GRPO's."""
    if not data:
        return {}
    method = data.get("method", {})
    return {
        "steps": data.get("steps", 0),
        "model": str(_model(data.get("policy", {}))),
        "fields": recipe_source.fields(data),
        "method": recipe_source.changes(method) if isinstance(method, Mapping) else [],
    }


def ledger(metrics: Sequence[Mapping[str, Any]]) -> dict[str, float]:
    """Tokens and seconds of all steps, by what they were for."""
    sums: dict[str, float] = {}
    for line in metrics:
        for name, x in line.items():
            if name.startswith(LEDGER) and isinstance(x, int | float):
                sums[name] = sums.get(name, 0.0) + x
    return sums


def packed(data: Any) -> bytes:
    """Data as JSON in gzip, the same bytes for the same data."""
    return gzip.compress(json.dumps(data, separators=(",", ":")).encode(), 6, mtime=0)


def embedded(data: Any) -> str:
    """Packed data as text that a page can hold: letters, digits, +, / and =."""
    return b64encode(packed(data)).decode()


def _new(groups: Mapping[int, Any], metrics: Sequence[Mapping[str, Any]], since: int) -> list[int]:
    """The steps whose groups the page does not have yet."""
    known = {line["step"] for line in metrics[:since]}
    return [step for step in groups if step not in known]


def _tasks(shelf: Shelf, steps: Sequence[int]) -> list[str]:
    return list(dict.fromkeys(group["task"] for step in steps for group in shelf.groups[step]))


def _model(policy: Any) -> Any:
    inner = policy.get("base", policy.get("first", policy)) if isinstance(policy, Mapping) else {}
    return inner.get("model", "") if isinstance(inner, Mapping) else ""


def _checked(folder: Path) -> Path:
    if not folder.is_dir():
        raise Refused(f"run: {str(folder)!r} is no folder.")
    readable = os.access(folder, os.R_OK | os.X_OK, effective_ids=True)
    if readable and not any((folder / name).exists() for name in ("recipe.json", "metrics.jsonl")):
        raise Refused(f"run: {str(folder)!r} holds no run: it has no recipe.json.")
    return folder.resolve()


def _near(folder: Path) -> str:
    """A folder below this one without what lies above, which is nobody's business."""
    here = Path.cwd()
    return str(folder.relative_to(here) if folder.is_relative_to(here) else folder)
