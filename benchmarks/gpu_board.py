"""Benchmark jobs, each with a time limit, and the files of their results."""

import gc
import json
import signal
import time
import traceback
from collections.abc import Callable, Generator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

Measurements = Mapping[str, Any]


class OutOfTime(BaseException):
    """The time limit of a job expired; no Exception, so that the job cannot catch it."""


@dataclass(frozen=True)
class Job:
    """One measurement, which becomes a row of the results.

    Args:
        table: the table of the row.
        labels: the cells that name the row.
        expected_seconds: approximate duration; the job is dropped if less time is left.
        run: measures and returns the other cells.
    """

    table: str
    labels: Mapping[str, str | int]
    expected_seconds: float
    run: Callable[[], Measurements]


class ResultBoard:
    """The rows of all jobs in a JSON file, a Markdown page and a text file of errors.

    Args:
        file: the JSON file.
        header: facts of the run, printed before the tables.
        captions: a caption per table.
        deadline: the end of the measurements, in seconds of `time.monotonic`.
    """

    def __init__(
        self, file: Path, header: Measurements, captions: Mapping[str, str], deadline: float
    ) -> None:
        self.file = file
        self.header = header
        self.captions = captions
        self.deadline = deadline
        self.rows: list[dict[str, Any]] = []
        file.parent.mkdir(parents=True, exist_ok=True)
        self.errors = file.with_suffix(".errors.txt")
        self.errors.write_text("")

    def run_job(self, job: Job) -> None:
        """Run a job and save its row; drop the job if too little time is left."""
        start = time.monotonic()
        seconds_left = self.deadline - start
        if job.expected_seconds >= seconds_left:
            note = f"dropped: {max(0, seconds_left):.0f} s were left"
            measurements: Measurements = {"note": note}
        else:
            measurements = self._run_guarded(job, seconds_left)
        duration = {"took": round(time.monotonic() - start, 2)}
        self.rows.append({"table": job.table, **job.labels, **measurements, **duration})
        print(_format_line(self.rows[-1]), flush=True)
        self.write()

    def write(self) -> None:
        """Write the rows measured so far."""
        results = {**self.header, "captions": self.captions, "rows": self.rows}
        self.file.write_text(json.dumps(results, indent=1) + "\n")
        self.file.with_suffix(".md").write_text(render_page(self.header, self.captions, self.rows))

    def _run_guarded(self, job: Job, seconds_left: float) -> Measurements:
        """Return the measurements or a note on the failure; release the job's memory."""
        try:
            with _time_limit(seconds_left):
                return job.run()
        except OutOfTime:
            return {"note": f"stopped: {seconds_left:.0f} s were not enough"}
        except Exception as error:
            with self.errors.open("a") as file:
                print(job.table, dict(job.labels), traceback.format_exc(), sep="\n", file=file)
            first_line = next(iter(str(error).strip().splitlines()), "")
            return {"note": f"failed: {type(error).__name__}: {first_line}"[:160]}
        finally:
            gc.collect()
            _empty_cuda_cache()


def _empty_cuda_cache() -> None:
    import torch

    if torch.cuda.is_available():
        torch.cuda.empty_cache()


@contextmanager
def _time_limit(seconds: float) -> Generator[None]:
    def raise_out_of_time(*_: object) -> None:
        raise OutOfTime

    signal.signal(signal.SIGALRM, raise_out_of_time)
    signal.setitimer(signal.ITIMER_REAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)


def render_page(
    header: Measurements, captions: Mapping[str, str], rows: list[dict[str, Any]]
) -> str:
    """Render the header and a table per caption that has rows, as Markdown."""
    facts = "\n".join(f"* {name}: {_format_value(value)}" for name, value in header.items())
    sections = [f"# On one GPU\n\n{facts}"]
    for name, caption in captions.items():
        members = [row for row in rows if row["table"] == name]
        if members:
            sections.append(f"## {name}\n\n{caption}\n\n{_table(members)}")
    return "\n\n".join(sections) + "\n"


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
