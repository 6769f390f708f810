"""Rows of a benchmark: measured one by one, each guarded, written down as soon as it is there."""

import gc
import json
import signal
import time
import traceback
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

Measurements = Mapping[str, Any]


class OutOfTime(BaseException):
    """Whatever is being done has to end; no Exception, which somebody on the way might catch."""


@dataclass(frozen=True)
class Job:
    """A row to be: its table, what is measured, about how many seconds that takes."""

    table: str
    labels: Mapping[str, str | int]
    expected_seconds: float
    run: Callable[[], Measurements]


class ResultBoard:
    """What was measured, what failed and what was dropped: a file, its page, and what went wrong.

    `about` is said before the tables, `captions` of each.
    """

    def __init__(
        self, file: Path, about: Measurements, captions: Mapping[str, str], ends: float
    ) -> None:
        self.file, self.header, self.captions, self.deadline = file, about, captions, ends
        self.rows: list[dict[str, Any]] = []
        file.parent.mkdir(parents=True, exist_ok=True)
        self.errors = file.with_suffix(".errors.txt")
        self.errors.write_text("")

    def run_job(self, job: Job) -> None:
        """Measure a row, unless too little time is left."""
        left = self.deadline - time.monotonic()
        began = time.monotonic()
        if job.expected_seconds >= left:
            said: Measurements = {"note": f"dropped: {max(0, left):.0f} s were left"}
        else:
            said = self._run_guarded(job, left)
        took = {"took": round(time.monotonic() - began, 2)}
        self.rows.append({"table": job.table, **job.labels, **said, **took})
        print(_format_line(self.rows[-1]), flush=True)
        self.write()

    def write(self) -> None:
        """Everything until now."""
        every = {**self.header, "captions": self.captions, "rows": self.rows}
        self.file.write_text(json.dumps(every, indent=1) + "\n")
        self.file.with_suffix(".md").write_text(render_page(self.header, self.captions, self.rows))

    def _run_guarded(self, job: Job, left: float) -> Measurements:
        """What was said, or why nothing was; what it held is let go of."""
        try:
            with _time_limit(left):
                return job.run()
        except OutOfTime:
            return {"note": f"stopped: {left:.0f} s were not enough"}
        except Exception as error:
            with self.errors.open("a") as file:
                print(job.table, dict(job.labels), traceback.format_exc(), sep="\n", file=file)
            first = next(iter(str(error).strip().splitlines()), "")
            return {"note": f"failed: {type(error).__name__}: {first}"[:160]}
        finally:
            gc.collect()
            _empty_cuda_cache()


def _empty_cuda_cache() -> None:
    import torch

    if torch.cuda.is_available():
        torch.cuda.empty_cache()


@contextmanager
def _time_limit(seconds: float) -> Iterator[None]:
    def ring(*_: object) -> None:
        raise OutOfTime

    signal.signal(signal.SIGALRM, ring)
    signal.setitimer(signal.ITIMER_REAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)


def render_page(
    header: Measurements, captions: Mapping[str, str], rows: list[dict[str, Any]]
) -> str:
    """A table for each kind of row."""
    head = "\n".join(f"* {name}: {_format_value(value)}" for name, value in header.items())
    tables = "\n\n".join(
        f"## {name}\n\n{captions[name]}\n\n{_table([r for r in rows if r['table'] == name])}"
        for name in captions
        if any(row["table"] == name for row in rows)
    )
    return f"# On one GPU\n\n{head}\n\n{tables}\n"


def _table(rows: list[dict[str, Any]]) -> str:
    names = dict.fromkeys(name for row in rows for name in row if name not in ("table", "took"))
    order = [name for name in names if name != "note"] + ["note"]
    lines = [order, ["---"] * len(order)]
    lines += [[_format_value(row.get(name, "")) for name in order] for row in rows]
    return "\n".join(f"|{'|'.join(cells)}|" for cells in lines)


def _format_line(row: Measurements) -> str:
    return ", ".join(f"{name} {_format_value(value)}".strip() for name, value in row.items())


def _format_value(value: object) -> str:
    if isinstance(value, float):
        return f"{value:,.0f}" if abs(value) >= 1000 else f"{value:.3g}"
    return str(value).replace("|", "/")
