"""The JSON payload of the HTML report."""

import gzip
import os
import re
from base64 import b64encode
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from grupo.report.checks.truth import measured_terms
from grupo.report.html import recipe_source
from grupo.report.html.journal_index import JournalIndex
from grupo.report.html.metric_docs import metric_definition
from grupo.report.html.run_view import RunView
from grupo.report.stages import COLUMNS, stage_lines
from grupo.storage.pipeline_dirs import pipeline_of, stage_folders
from grupo.util.errors import ConfigError
from grupo.util.run_files import COMPARISON_FILE, METRICS_FILE, RECIPE_JSON
from grupo.util.user_paths import check_regular_files, no_run_message, relative_path

GZIP_LEVEL = 4  # takes a third of the time of level 6, for 4 % more bytes
TOTALS_PREFIXES = ("tokens/", "time/")


def open_runs(folders: Sequence[Path]) -> list[RunView]:
    """Open the runs in the folders, without duplicates, and read their current state.

    The folder of a comparison or of a pipeline stands for all its runs.

    Raises:
        ConfigError: a folder does not exist or holds no run, or none of them is readable.
    """
    run_folders = [run for folder in folders for run in _runs_below(folder)]
    runs = [RunView(folder) for folder in dict.fromkeys(map(_check_run_folder, run_folders))]
    _prepare(runs)
    if all(run.unreadable_reason for run in runs):
        raise ConfigError(f"run: {str(folders[0])!r} is not readable: {runs[0].unreadable_reason}.")
    return runs


def open_begun_runs(folders: Sequence[Path], runs: list[RunView]) -> None:
    """Append the runs of pipelines that began since the others were opened.

    Args:
        folders: the folders of the runs and pipelines.
        runs: the runs that are open.
    """
    known = {run.folder for run in runs}
    stages = [stage for folder in folders for stage in stage_folders(folder) if stage.is_run]
    begun = dict.fromkeys(stage.folder.resolve() for stage in stages)
    if new := [RunView(folder) for folder in begun if folder not in known]:
        runs += new
        _prepare(runs)


def _prepare(runs: Sequence[RunView]) -> None:
    """Name the runs, and read their current state; the first of a pipeline shows its stages."""
    pipelines: set[Path] = set()
    for run, name in zip(runs, distinct_names([run.folder for run in runs]), strict=True):
        run.name = name
        root = pipeline_of(run.folder)
        run.pipeline = root if root not in pipelines else None
        if root:
            pipelines.add(root)
        run.refresh()


def distinct_names(folders: Sequence[Path]) -> list[str]:
    """The shortest path suffixes that are distinct.

    >>> distinct_names([Path("/a/run"), Path("/b/run"), Path("/b/other")])
    ['a/run', 'b/run', 'other']
    """
    names = []
    for folder in folders:
        others = [other.parts for other in folders if other != folder]
        suffixes = (folder.parts[-depth:] for depth in range(1, len(folder.parts) + 1))
        unique = next(
            suffix
            for suffix in suffixes
            if suffix == folder.parts or all(o[-len(suffix) :] != suffix for o in others)
        )
        names.append(str(Path(*unique)))
    return names


def run_payload(run: RunView, since: int = 0) -> dict[str, Any]:
    """A run as data for the page.

    Args:
        run: the run.
        since: how many steps the page already has; they are left out.
    """
    index = run.journal_index
    steps = run.metrics[since:]
    names = list(dict.fromkeys(name for line in run.metrics for name in line))
    definitions = {name: metric_definition(name) for name in names}
    new = _new_steps(index.groups, run.metrics, since)
    recipe = run.record_errors("recipe.json, its fields", {}, lambda: recipe_payload(run.recipe))
    stages = run.record_errors("the stages of the pipeline", {}, lambda: stages_payload(run))
    return {
        "name": run.name,
        "folder": str(relative_path(run.folder)),
        "epoch": run.epoch,
        "problems": run.problems,
        "last_written_at": run.last_written_at,
        "summary": {n: x for n, x in run.summary.items() if n not in ("ledger", "held_out")},
        "held_out": run.eval_scores,
        "ledger": token_and_time_totals(run.metrics),
        "findings": run.findings,
        "recipe": recipe,
        "metric_definitions": {name: asdict(d) for name, d in definitions.items() if d},
        "since": since,
        "metrics": {name: [line.get(name) for line in steps] for name in names},
        "groups_by_step": {str(step): index.groups[step] for step in new},
        "prompts": {task: index.prompts[task] for task in _task_keys(index, new)},
        "has_responses": bool(index.response_ranges),
        "stages": stages,
        "strategies": run.strategies,
    }


def stages_payload(run: RunView) -> dict[str, Any]:
    """The table of the pipeline of which a run is the first; empty for other runs."""
    if not run.pipeline:
        return {}
    lines = [list(line.cells) for line in stage_lines(run.pipeline)]
    return {"folder": str(relative_path(run.pipeline)), "columns": COLUMNS, "lines": lines}


def recipe_payload(data: Mapping[str, Any]) -> dict[str, Any]:
    """A recipe as code, field by field, and its method next to GRPO's."""
    if not data:
        return {}
    method = data.get("method", {})
    return {
        "max_steps": data.get("max_steps", 0),
        "model": str(_model_name(data.get("policy", {}))),
        "measured_terms": measured_terms(data),
        "fields": recipe_source.recipe_fields(data),
        "method": recipe_source.method_changes(method) if isinstance(method, Mapping) else [],
    }


def token_and_time_totals(metrics: Sequence[Mapping[str, Any]]) -> dict[str, float]:
    """The `tokens/` and `time/` metrics summed over all steps."""
    sums: dict[str, float] = {}
    for line in metrics:
        for name, x in line.items():
            if name.startswith(TOTALS_PREFIXES) and isinstance(x, int | float):
                sums[name] = sums.get(name, 0.0) + x
    return sums


def packed_text(text: str) -> str:
    """A text gzipped and in base64; the same text gives the same characters."""
    return b64encode(gzip.compress(text.encode(), GZIP_LEVEL, mtime=0)).decode()


def _new_steps(
    groups: Mapping[int, Any], metrics: Sequence[Mapping[str, Any]], since: int
) -> list[int]:
    """The steps whose groups the page does not have."""
    known = {line["step"] for line in metrics[:since]}
    return [step for step in groups if step not in known]


def _task_keys(journal_index: JournalIndex, steps: Sequence[int]) -> list[str]:
    return list(
        dict.fromkeys(group["task"] for step in steps for group in journal_index.groups[step])
    )


def _model_name(policy: Any) -> Any:
    inner = policy.get("base", policy.get("first", policy)) if isinstance(policy, Mapping) else {}
    return inner.get("model", "") if isinstance(inner, Mapping) else ""


def _runs_below(folder: Path) -> list[Path]:
    """The runs of a comparison or a pipeline; for another folder, the folder itself."""
    return _runs_of_comparison(folder) or _runs_of_pipeline(folder) or [folder]


def _runs_of_pipeline(folder: Path) -> list[Path]:
    """The runs that have begun in the folder of a pipeline; none for another folder."""
    stages = stage_folders(folder)
    runs = [stage.folder for stage in stages if stage.is_run]
    if stages and not runs:
        raise ConfigError(f"run: {str(folder)!r} is a pipeline of which no run has begun.")
    return runs


def _runs_of_comparison(folder: Path) -> list[Path]:
    """The runs below the folder of a comparison; none for another folder."""
    if not os.path.isfile(folder / COMPARISON_FILE):  # False if the folder is unreadable
        return []
    runs = sorted((path.parent for path in folder.rglob(RECIPE_JSON)), key=_natural_order)
    if not runs:
        raise ConfigError(f"run: {str(folder)!r} is a comparison of which no run has begun.")
    return runs


def _natural_order(path: Path) -> list[tuple[str, int]]:
    """Sorts seed 10 after seed 9."""
    return [(word, int(digits or 0)) for word, digits in re.findall(r"(\D+)(\d*)", f"{path}/")]


def _check_run_folder(folder: Path) -> Path:
    if not folder.is_dir():
        raise ConfigError(no_run_message(folder))
    readable = os.access(folder, os.R_OK | os.X_OK, effective_ids=True)
    if readable and not any((folder / name).exists() for name in (RECIPE_JSON, METRICS_FILE)):
        raise ConfigError(no_run_message(folder))
    check_regular_files(folder)
    return folder.resolve()
