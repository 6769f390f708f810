"""From a run's folder to evidence; texts are counted, not kept."""

import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from grupo.report.checks.group_summary import REQUIRED_FIELDS, GroupSummary, summarize_groups
from grupo.report.checks.run_data import RunData, RunFiles
from grupo.report.read_run import (
    Record,
    check_run_folder,
    explain_permission_errors,
    read_journal,
    read_metrics,
    read_summary,
)
from grupo.storage import strict_json

LOCKS_FILE = Path("/proc/locks")  # who holds what, where the system says so
JOURNALS = ("metrics.jsonl", "rollouts.jsonl")


def load_run(folder: Path) -> RunData:
    """What the run in a folder left behind until now."""
    lacking: dict[str, None] = {}
    with explain_permission_errors(check_run_folder(folder)):
        steps = [m for m in read_metrics(folder) if _has_fields(m, ("step",), lacking)]
        groups = _groups(folder, lacking)
        return RunData(
            tuple(steps),
            groups,
            read_summary(folder),
            _recipe(folder),
            _files(folder, tuple(lacking)),
        )


def _groups(folder: Path, lacking: dict[str, None]) -> tuple[GroupSummary, ...]:
    lines = read_journal(folder / "rollouts.jsonl")
    return tuple(
        summarize_groups(line for line in lines if _has_fields(line, REQUIRED_FIELDS, lacking))
    )


def _has_fields(line: Record, names: Sequence[str], lacking: dict[str, None]) -> bool:
    """Has the line all these? Those it lacks are noted."""
    absent = [f"`{name}`" for name in names if name not in line]
    lacking.update(dict.fromkeys(absent))
    return not absent


def _recipe(folder: Path) -> dict[str, Any]:
    """The recipe as data; empty where it cannot be read."""
    try:
        data = strict_json.from_json((folder / "recipe.json").read_text())
    except ValueError:
        return {}
    return data.get("recipe", {}) if isinstance(data, dict) else {}


def _files(folder: Path, lacking: tuple[str, ...]) -> RunFiles:
    there = [folder / name for name in JOURNALS if (folder / name).exists()]
    written = max((p.stat().st_mtime for p in [*there, folder / "recipe.json"]), default=0.0)
    torn = tuple(path.name for path in there if _is_torn(path))
    return RunFiles(torn, lacking, _is_locked(folder / "lock"), max(0.0, time.time() - written))


def _is_torn(path: Path) -> bool:
    """Does the file end within a line, or in a hole that a power cut left?"""
    with path.open("rb") as file:
        file.seek(max(0, path.stat().st_size - 4096))
        end = file.read()
    return bool(end) and (not end.endswith(b"\n") or b"\0" in end)


def _is_locked(path: Path) -> bool:
    """Does a process on this machine hold the lock? Asking takes no lock, and disturbs nobody."""
    if not path.exists() or not LOCKS_FILE.is_file():
        return False
    holder, number = path.read_text(), f":{path.stat().st_ino} "
    held = (line for line in LOCKS_FILE.read_text().splitlines() if "FLOCK" in line)
    return any(number in line and holder in line.split() for line in held)
