"""Readers of a run's folder: they work while the run is written and after it was interrupted."""

import math
from collections import Counter
from collections.abc import Generator, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from grupo.core.kept_rollouts import rollout_id
from grupo.storage import strict_json
from grupo.util.errors import ConfigError
from grupo.util.json_text import read_limited
from grupo.util.limits import JOURNAL_LINE, METRICS_SIZE
from grupo.util.regular_files import check_file_size, read_lines
from grupo.util.run_files import CRASH_FILE, METRICS_FILE, RECIPE_JSON, ROLLOUTS_FILE, SUMMARY_FILE
from grupo.util.terminal_text import one_line, shorten
from grupo.util.user_paths import check_regular_files, no_run_message

Record = Mapping[str, Any]
MAX_CRASH_LINE = 500  # characters of that line
MAX_REASON = 300  # characters of the error of a file that was changed
# what a file of a run raises whose values are missing or of another type
DAMAGE = (OSError, ValueError, LookupError, TypeError, AttributeError, ArithmeticError)
# the fields of every line of rollouts.jsonl, in every version that wrote such lines
ROLLOUT_FIELDS = frozenset(
    {"step", "task", "prompt", "text", "reward", "reward_terms", "error"}
) | {*("advantage", "length", "truncated")}

_TYPES = {"step": int, "task": str, "text": str, "error": str, "reward_terms": Mapping}


@dataclass(frozen=True)
class MetricSeries:
    """A metric at the steps at which it is a finite number."""

    steps: tuple[int, ...] = ()
    values: tuple[float, ...] = ()

    def __iter__(self) -> Iterator[tuple[int, float]]:
        """Pairs of step and value."""
        return zip(self.steps, self.values, strict=True)

    def first(self, count: int) -> "MetricSeries":
        """The first `count` points."""
        return MetricSeries(self.steps[:count], self.values[:count])

    def last(self, count: int) -> "MetricSeries":
        """The last `count` points."""
        return MetricSeries(self.steps[-count:], self.values[-count:])

    @property
    def mean(self) -> float:
        """The mean value; NaN for an empty series."""
        return sum(self.values) / len(self.values) if self.values else math.nan


def check_run_folder(folder: Path) -> Path:
    """Return the folder; raise `ConfigError` if it holds no run or cannot be read."""
    with explain_read_errors(folder):
        if not (folder / RECIPE_JSON).is_file():
            raise ConfigError(no_run_message(folder))
        check_regular_files(folder)
        return folder


@contextmanager
def explain_read_errors(folder: Path) -> Generator[None]:
    """Turn what reading the files of a run raises into a `ConfigError` with the folder.

    Permissions that are missing name the owner of the folder. Other errors are those of files that
    were changed, of which values may be missing or of any type.
    """
    try:
        yield
    except ConfigError:
        raise
    except PermissionError as error:
        path = error.filename or folder
        raise ConfigError(f"run: {str(path)!r} is not readable: {_owner(folder)}.") from error
    except DAMAGE as error:
        reason = one_line(shorten(f"{type(error).__name__}: {error}", MAX_REASON))
        raise ConfigError(
            f"run: {str(folder)!r} cannot be read: {reason}. A file of it was changed, or another"
            " version of grupo wrote it. `grupo check` names damaged files."
        ) from error


def _owner(folder: Path) -> str:
    try:
        return f"the folder belongs to {folder.owner()!r}, and its permissions exclude you"
    except (OSError, KeyError):
        return "the permissions of a parent folder exclude you"


def read_journal(path: Path) -> Iterator[Record]:
    """Yield a journal's records one by one; a torn last line is left out.

    Raises:
        ConfigError: any other line is not valid JSON; the message has its number.
    """
    if not path.exists():
        return
    with path.open("rb") as file:
        for number, line in enumerate(read_lines(file, JOURNAL_LINE), 1):
            if not line.endswith(b"\n"):
                return
            try:
                yield strict_json.from_json(line.decode())
            except ValueError as error:
                if not file.read(1):
                    return
                raise ConfigError(f"{path}, line {number}, cannot be read: {error}.") from error


def read_rollouts(folder: Path) -> Iterator[Record]:
    """Yield the records of a run's `rollouts.jsonl`.

    Raises:
        ConfigError: the folder holds no run, or a line lacks one of `ROLLOUT_FIELDS` or has it in
            another type.
    """
    path = check_run_folder(folder) / ROLLOUTS_FILE
    with explain_read_errors(folder):
        for number, line in enumerate(read_journal(path), 1):
            if missing := ", ".join(sorted(ROLLOUT_FIELDS.difference(line))):
                raise ConfigError(
                    f"{path}, line {number}, lacks {missing}: another version wrote it."
                )
            for name, kind in _TYPES.items():
                if not isinstance(line[name], kind):
                    raise ConfigError(
                        f"{path}, line {number}: {name}: {line[name]!r:.80} is of another type."
                    )
            yield line


def read_numbered_rollouts(folder: Path) -> Iterator[Record]:
    """Yield the records of `rollouts.jsonl` with their `id` and their `parents`.

    The `id` has the step and the place of the record in the step. `parents` has the `id` of each
    rollout that the prompt showed.

    Raises:
        ConfigError: As `read_rollouts`, or `parents` is no list of texts.
    """
    places: Counter[int] = Counter()
    for rollout in read_rollouts(folder):
        step = rollout["step"]
        parents = rollout.get("parents", [])
        if not (isinstance(parents, list) and all(isinstance(x, str) for x in parents)):
            raise ConfigError(f"{folder / ROLLOUTS_FILE}: parents: {parents!r:.80} is no list.")
        yield {**rollout, "id": rollout_id(step, places[step]), "parents": parents}
        places[step] += 1


def read_metrics(folder: Path) -> tuple[Mapping[str, float], ...]:
    """The metrics of every step as floats; the string "NaN" becomes NaN.

    Raises:
        ConfigError: a line holds a value that is not a number, or the file exceeds its limit.
    """
    path = folder / METRICS_FILE
    check_file_size(path, METRICS_SIZE)
    return tuple(
        _as_floats(line, f"{path}, line {i}") for i, line in enumerate(read_journal(path), 1)
    )


def _as_floats(line: Any, place: str) -> Mapping[str, float]:
    try:
        return {name: float(value) for name, value in line.items()}
    except (AttributeError, TypeError, ValueError) as error:
        raise ConfigError(f"{place}, holds a value that is not a number: {error}.") from error


def metric_series(steps: tuple[Mapping[str, float], ...], name: str) -> MetricSeries:
    """One metric at the steps that have a finite value of it.

    >>> metric_series(({"step": 0, "loss": 0.5}, {"step": 1}, {"step": 2, "loss": 0.25}), "loss")
    MetricSeries(steps=(0, 2), values=(0.5, 0.25))
    """
    points = [(int(m["step"]), m[name]) for m in steps if math.isfinite(m.get(name, math.nan))]
    return MetricSeries(tuple(step for step, _ in points), tuple(value for _, value in points))


def read_summary(folder: Path) -> Record:
    """`summary.json` of a finished run; empty while the run has not finished."""
    path = folder / SUMMARY_FILE
    return strict_json.from_json(read_limited(path)) if path.exists() else {}


def crash_reason(folder: Path) -> str:
    """Why the process of a compared run crashed; "" if it did not."""
    path = folder / CRASH_FILE
    crash = strict_json.from_json(read_limited(path)) if path.is_file() else {}
    return _describe_crash(crash["code"], crash["last_line"]) if crash else ""


def _describe_crash(code: int, last_line: object) -> str:
    """A negative code is a signal's; the kernel's out-of-memory killer sends 9."""
    shown = one_line(shorten(str(last_line), MAX_CRASH_LINE))
    if code >= 0:
        return shown or f"exit code {code}"
    oom_hint = ", as the out-of-memory killer does" * (code == -9)
    last_output = f"; its last line: {shown}" * bool(shown)
    return f"killed by signal {-code}{oom_hint}{last_output}"
