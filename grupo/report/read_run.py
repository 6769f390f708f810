"""Reading a run's folder from outside, while it is being written or after it was cut off."""

import math
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from grupo.core.errors import ConfigError
from grupo.storage import strict_json

Record = Mapping[str, Any]
CRASH_FILE = "crash.json"  # how the process of a compared run ended, if it ended as it should not
# what a line of the journal of rollouts has, in every version that wrote such lines
ROLLOUT_FIELDS = frozenset({"step", "task", "prompt", "text", "reward", "parts", "failed"}) | {
    *("advantage", "length", "truncated")
}


@dataclass(frozen=True)
class MetricSeries:
    """A metric over the steps at which it is a finite number."""

    steps: tuple[int, ...] = ()
    values: tuple[float, ...] = ()

    def __iter__(self) -> Iterator[tuple[int, float]]:
        """Each step with its value."""
        return zip(self.steps, self.values, strict=True)

    def first(self, count: int) -> "MetricSeries":
        """Its first so many points."""
        return MetricSeries(self.steps[:count], self.values[:count])

    def last(self, count: int) -> "MetricSeries":
        """Its last so many points."""
        return MetricSeries(self.steps[-count:], self.values[-count:])

    @property
    def mean(self) -> float:
        """The mean; NaN of nothing."""
        return sum(self.values) / len(self.values) if self.values else math.nan


def check_run_folder(folder: Path) -> Path:
    """The folder, if it holds a run; refuses any other, and one that may not be read."""
    with explain_permission_errors(folder):
        if not (folder / "recipe.json").is_file():
            raise ConfigError(f"run: {str(folder)!r} holds no run: it has no recipe.json.")
        return folder


@contextmanager
def explain_permission_errors(folder: Path) -> Iterator[None]:
    """Say whose it is, where a folder or what lies in it may not be read."""
    try:
        yield
    except PermissionError as error:
        path = error.filename or folder
        raise ConfigError(f"run: {str(path)!r} may not be read: {_owner(folder)}.") from error


def _owner(folder: Path) -> str:
    try:
        return f"the folder belongs to {folder.owner()!r}, and its rights keep you out"
    except (OSError, KeyError):
        return "the rights of the folders above it keep you out"


def read_journal(path: Path) -> Iterator[Record]:
    """A journal's records one by one, none of them kept; a torn last line is left out.

    Raises `ConfigError` with the number of any other line that cannot be read.
    """
    if not path.exists():
        return
    with path.open("rb") as file:
        for number, line in enumerate(file, 1):
            if not line.endswith(b"\n"):
                return
            try:
                yield strict_json.from_json(line.decode())
            except ValueError as error:
                if not file.read(1):
                    return
                raise ConfigError(f"{path}, line {number}, cannot be read: {error}.") from error


def read_rollouts(folder: Path) -> Iterator[Record]:
    """The journal of a run's rollouts, one by one; refuses lines that lack what is read of them."""
    path = check_run_folder(folder) / "rollouts.jsonl"
    with explain_permission_errors(folder):
        for number, line in enumerate(read_journal(path), 1):
            if lost := ", ".join(sorted(ROLLOUT_FIELDS.difference(line))):
                raise ConfigError(f"{path}, line {number}, lacks {lost}: another version wrote it.")
            yield line


def read_metrics(folder: Path) -> tuple[Mapping[str, float], ...]:
    """The metrics of every step, as numbers; "NaN" is read as NaN.

    Raises `ConfigError` for a line with anything else.
    """
    path = folder / "metrics.jsonl"
    return tuple(
        _as_floats(line, f"{path}, line {i}") for i, line in enumerate(read_journal(path), 1)
    )


def _as_floats(line: Any, place: str) -> Mapping[str, float]:
    try:
        return {name: float(value) for name, value in line.items()}
    except (AttributeError, TypeError, ValueError) as error:
        raise ConfigError(f"{place}, holds what is no number: {error}.") from error


def metric_series(steps: tuple[Mapping[str, float], ...], name: str) -> MetricSeries:
    """One metric over the steps that have it.

    >>> metric_series(({"step": 0, "loss": 0.5}, {"step": 1}, {"step": 2, "loss": 0.25}), "loss")
    MetricSeries(steps=(0, 2), values=(0.5, 0.25))
    """
    found = [(int(m["step"]), m[name]) for m in steps if math.isfinite(m.get(name, math.nan))]
    return MetricSeries(tuple(step for step, _ in found), tuple(value for _, value in found))


def read_summary(folder: Path) -> Record:
    """What the run came to; empty while it has not ended."""
    path = folder / "summary.json"
    return strict_json.from_json(path.read_text()) if path.exists() else {}


def crash_reason(folder: Path) -> str:
    """Why the process of a compared run ended as it should not; nothing if it did not."""
    path = folder / CRASH_FILE
    said = strict_json.from_json(path.read_text()) if path.is_file() else {}
    return _describe_crash(said["code"], said["said"]) if said else ""


def _describe_crash(code: int, last_line: str) -> str:
    """A negative code is a signal's; the system sends 9 when memory is short."""
    if code >= 0:
        return last_line or f"it ended with exit code {code}"
    short = ", as the system does when memory is short" * (code == -9)
    return f"killed by signal {-code}{short}" + f"; its last line: {last_line}" * bool(last_line)
