"""Loads the data that the checks need from a run's folder; texts are counted, not kept."""

import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from grupo.report.checks.group_summary import REQUIRED_FIELDS, GroupSummary, summarize_groups
from grupo.report.checks.run_data import RunData, RunFiles
from grupo.report.read_run import (
    Record,
    check_run_folder,
    explain_read_errors,
    read_journal,
    read_metrics,
    read_summary,
)
from grupo.storage import strict_json
from grupo.util.json_text import read_limited
from grupo.util.run_files import METRICS_FILE, RECIPE_JSON, ROLLOUTS_FILE

LOCKS_FILE = Path("/proc/locks")  # on Linux: the file locks of all processes
JOURNALS = (METRICS_FILE, ROLLOUTS_FILE)
MAX_HOLDER = 20  # bytes of a process id in a lock


def load_run(folder: Path) -> RunData:
    """The data of the run in a folder, finished or in progress.

    Raises:
        ConfigError: the folder holds no run, or it cannot be read.
    """
    missing_fields: dict[str, None] = {}
    with explain_read_errors(check_run_folder(folder)):
        steps = [m for m in read_metrics(folder) if _has_fields(m, ("step",), missing_fields)]
        return RunData(
            steps=tuple(steps),
            groups=_groups(folder, missing_fields),
            summary=read_summary(folder),
            recipe=_recipe(folder),
            files=_files(folder, tuple(missing_fields)),
        )


def _groups(folder: Path, missing_fields: dict[str, None]) -> tuple[GroupSummary, ...]:
    lines = read_journal(folder / ROLLOUTS_FILE)
    complete = (line for line in lines if _has_fields(line, REQUIRED_FIELDS, missing_fields))
    return tuple(summarize_groups(complete))


def _has_fields(line: Record, names: Sequence[str], missing_fields: dict[str, None]) -> bool:
    """True if the line has all fields; the absent ones are added to `missing_fields`."""
    absent = [f"`{name}`" for name in names if name not in line]
    missing_fields.update(dict.fromkeys(absent))
    return not absent


def _recipe(folder: Path) -> dict[str, Any]:
    """The recipe as data; empty if it is not valid JSON."""
    try:
        data = strict_json.from_json(read_limited(folder / RECIPE_JSON))
    except ValueError:
        return {}
    recipe = data.get("recipe") if isinstance(data, dict) else {}
    return recipe if isinstance(recipe, dict) else {}


def _files(folder: Path, missing_fields: tuple[str, ...]) -> RunFiles:
    journals = [folder / name for name in JOURNALS if (folder / name).exists()]
    written_at = max((p.stat().st_mtime for p in [*journals, folder / RECIPE_JSON]), default=0.0)
    return RunFiles(
        torn_journals=tuple(path.name for path in journals if _is_torn(path)),
        missing_fields=missing_fields,
        is_locked=_is_locked(folder / "lock"),
        seconds_since_write=max(0.0, time.time() - written_at),
    )


def _is_torn(path: Path) -> bool:
    """True if the file ends within a line, or in zero bytes left by a power cut."""
    with path.open("rb") as file:
        file.seek(max(0, path.stat().st_size - 4096))
        end = file.read()
    return bool(end) and (not end.endswith(b"\n") or b"\0" in end)


def _is_locked(path: Path) -> bool:
    """True if a process on this machine holds the lock; the check itself takes no lock."""
    if not path.exists() or not LOCKS_FILE.is_file():
        return False
    with path.open("rb") as file:
        holder = file.read(MAX_HOLDER).decode("ascii", "replace")
    inode = f":{path.stat().st_ino} "
    locks = (line for line in LOCKS_FILE.read_text().splitlines() if "FLOCK" in line)
    return any(inode in line and holder in line.split() for line in locks)
