"""What a page is told of runs, as data."""

import gzip
import json
import os
from base64 import b64encode
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from grupo.core.errors import ConfigError
from grupo.report.html import recipe_source
from grupo.report.html.journal_index import JournalIndex
from grupo.report.html.metric_docs import metric_definition
from grupo.report.html.run_view import RunView

TOTALS_PREFIXES = ("tokens/", "time/")


def open_runs(folders: Sequence[Path]) -> list[RunView]:
    """The runs in some folders, each once, read as far as they go.

    Raises `ConfigError` for a folder that is not there or holds no run, and where none may be read.
    """
    books = [RunView(folder) for folder in dict.fromkeys(map(_check_run_folder, folders))]
    for book, name in zip(books, distinct_names([book.folder for book in books]), strict=True):
        book.name = name
        book.refresh()
    if all(book.unreadable_reason for book in books):
        raise ConfigError(
            f"run: {str(folders[0])!r} is not yours to read: {books[0].unreadable_reason}."
        )
    return books


def distinct_names(folders: Sequence[Path]) -> list[str]:
    """Names of folders, as much of their paths as tells them apart.

    >>> distinct_names([Path("/a/run"), Path("/b/run"), Path("/b/other")])
    ['a/run', 'b/run', 'other']
    """
    names = []
    for folder in folders:
        others = [other.parts for other in folders if other != folder]
        ends = (folder.parts[-depth:] for depth in range(1, len(folder.parts) + 1))
        apart = next(e for e in ends if e == folder.parts or all(o[-len(e) :] != e for o in others))
        names.append(str(Path(*apart)))
    return names


def run_payload(run: RunView, since: int = 0) -> dict[str, Any]:
    """A run as the page shows it, of its steps those after the first `since`."""
    shelf, steps = run.journal_index, run.metrics[since:]
    names = list(dict.fromkeys(name for line in run.metrics for name in line))
    new = _new_steps(shelf.groups, run.metrics, since)
    return {
        "name": run.name,
        "folder": _relative_path(run.folder),
        "epoch": run.epoch,
        "problems": run.problems,
        "written": run.last_written_at,
        "summary": {n: x for n, x in run.summary.items() if n not in ("ledger", "held_out")},
        "held_out": run.eval_scores,
        "ledger": token_and_time_totals(run.metrics),
        "findings": run.findings,
        "recipe": recipe_payload(run.recipe),
        "defined": {name: asdict(found) for name in names if (found := metric_definition(name))},
        "since": since,
        "metrics": {name: [line.get(name) for line in steps] for name in names},
        "index": {str(s): shelf.groups[s] for s in new},
        "prompts": {task: shelf.prompts[task] for task in _task_keys(shelf, new)},
        "traced": bool(shelf.byte_ranges["actions"]),
    }


def recipe_payload(data: Mapping[str, Any]) -> dict[str, Any]:
    """A recipe as code, field by field, its method beside GRPO's."""
    if not data:
        return {}
    method = data.get("method", {})
    return {
        "steps": data.get("steps", 0),
        "model": str(_model_name(data.get("policy", {}))),
        "fields": recipe_source.recipe_fields(data),
        "method": recipe_source.method_changes(method) if isinstance(method, Mapping) else [],
    }


def token_and_time_totals(metrics: Sequence[Mapping[str, Any]]) -> dict[str, float]:
    """Tokens and seconds of all steps, by what they were for."""
    sums: dict[str, float] = {}
    for line in metrics:
        for name, x in line.items():
            if name.startswith(TOTALS_PREFIXES) and isinstance(x, int | float):
                sums[name] = sums.get(name, 0.0) + x
    return sums


def gzip_json(data: Any) -> bytes:
    """Data as JSON in gzip, the same bytes for the same data."""
    return gzip.compress(json.dumps(data, separators=(",", ":")).encode(), 6, mtime=0)


def base64_gzip_json(data: Any) -> str:
    """Packed data as text that a page can hold: letters, digits, +, / and =."""
    return b64encode(gzip_json(data)).decode()


def _new_steps(
    groups: Mapping[int, Any], metrics: Sequence[Mapping[str, Any]], since: int
) -> list[int]:
    """The steps whose groups the page does not have yet."""
    known = {line["step"] for line in metrics[:since]}
    return [step for step in groups if step not in known]


def _task_keys(journal_index: JournalIndex, steps: Sequence[int]) -> list[str]:
    return list(
        dict.fromkeys(group["task"] for step in steps for group in journal_index.groups[step])
    )


def _model_name(policy: Any) -> Any:
    inner = policy.get("base", policy.get("first", policy)) if isinstance(policy, Mapping) else {}
    return inner.get("model", "") if isinstance(inner, Mapping) else ""


def _check_run_folder(folder: Path) -> Path:
    if not folder.is_dir():
        raise ConfigError(f"run: {str(folder)!r} is no folder.")
    readable = os.access(folder, os.R_OK | os.X_OK, effective_ids=True)
    if readable and not any((folder / name).exists() for name in ("recipe.json", "metrics.jsonl")):
        raise ConfigError(f"run: {str(folder)!r} holds no run: it has no recipe.json.")
    return folder.resolve()


def _relative_path(folder: Path) -> str:
    """A folder below this one without what lies above, which is nobody's business."""
    here = Path.cwd()
    return str(folder.relative_to(here) if folder.is_relative_to(here) else folder)
