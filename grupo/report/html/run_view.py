"""A run's folder as a page reads it: whatever state it is in, and again while it changes."""

import os
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

from grupo.report.doctor import examine
from grupo.report.html.journal_index import JournalIndex, join_journals, round_digits
from grupo.report.html.tail import JournalTail
from grupo.report.read_run import crash_reason
from grupo.storage import strict_json

T = TypeVar("T")
JsonObject = Mapping[str, Any]


class RunView:
    """A run, read as far as it goes; what cannot be read is among its `problems`, never raised.

    `epoch` counts how often its journals were cut back, as they are when a run is resumed.
    """

    def __init__(self, folder: Path) -> None:
        self.folder, self.name, self.epoch = folder, folder.resolve().name, 0
        self._reset()

    def refresh(self) -> None:
        """Read what is new."""
        if self.unreadable_reason:
            return
        if any(
            self._record_errors(name, False, lambda t=tail: t.was_cut_back)
            for name, tail in self.journal_tails.items()
        ):
            self.epoch += 1
            self._reset()
        takes = (("metrics", self._add_metrics), ("rollouts", self.journal_index.add_rollout))
        for name, take in (*takes, ("actions", self.journal_index.add_action)):
            self._record_errors(f"{name}.jsonl", None, partial(self._read_new_lines, name, take))
        self.recipe = self.recipe or _nested_object(self._read_json("recipe.json"), "recipe")
        self.summary = self._read_json("summary.json")
        self.crash_reason = (
            ""
            if self.summary
            else self._record_errors("crash.json", "", partial(crash_reason, self.folder))
        )
        self.eval_scores = _nested_object(self.summary, "held_out") or self._checkpoint_scores()
        if (
            len(self.metrics) != self.examined_steps
            and time.monotonic() >= self.next_examination_at
        ):
            self._examine()

    @property
    def unreadable_reason(self) -> str:
        """Why nothing in the folder may be read; nothing if it may."""
        try:
            os.listdir(self.folder)
            os.stat(self.folder / ".")
        except OSError as error:
            return error.strerror or str(error)
        return ""

    def groups(self, step: int) -> list[dict[str, Any]]:
        """The groups of a step, with every action that is kept."""
        texts = (
            partial(self._journal_lines, "rollouts", step),
            partial(self._journal_lines, "actions", step),
        )
        return self._record_errors(
            f"step {step}", [], lambda: join_journals(*(text() for text in texts))
        )

    @property
    def last_written_at(self) -> float:
        """When a step was last written, in seconds since 1970; 0 if none was."""
        path = self.folder / "metrics.jsonl"
        return self._record_errors(
            path.name, 0.0, lambda: path.stat().st_mtime if self.metrics else 0.0
        )

    @property
    def problems(self) -> list[str]:
        """What could not be read, and why; what a process that died left unfinished."""
        if self.unreadable_reason:
            return [f"the folder: {self.unreadable_reason}"]
        torn = {
            name: self._record_errors(name, 0, lambda t=t: t.torn_bytes)
            for name, t in self.journal_tails.items()
        }
        return [
            *[f"its process ended before the run did: {self.crash_reason}"]
            * bool(self.crash_reason),
            *(f"{where}: {why}" for where, why in self.read_errors.items()),
            *(
                f"{n}.jsonl: its last line is torn, {b} bytes left out"
                for n, b in torn.items()
                if b
            ),
        ]

    def _reset(self) -> None:
        names = ("metrics", "rollouts", "actions")
        self.journal_tails = {name: JournalTail(self.folder / f"{name}.jsonl") for name in names}
        self.metrics: list[JsonObject] = []
        self.journal_index, self.read_errors = JournalIndex(), dict[str, str]()
        self.recipe: JsonObject = {}
        self.summary: JsonObject = {}
        self.eval_scores: JsonObject = {}
        self.latest_checkpoint, self.checkpoint_data, self.crash_reason = "", {}, ""
        self.findings: list[JsonObject] = []
        self.examined_steps, self.next_examination_at = -1, 0.0

    def _examine(self) -> None:
        """Ask the doctor, who reads everything: at most a tenth of the time."""
        began, self.examined_steps = time.monotonic(), len(self.metrics)
        found = self._record_errors("the doctor", [], lambda: examine(self.folder))
        self.findings = [asdict(finding) for finding in found]
        self.next_examination_at = time.monotonic() + 9 * (time.monotonic() - began)

    def _read_new_lines(self, name: str, take: Callable[[int, bytes], None]) -> None:
        for begin, line in self.journal_tails[name]():
            self._record_errors(f"{name}.jsonl, byte {begin:,}", None, partial(take, begin, line))

    def _add_metrics(self, offset: int, line: bytes) -> None:
        record = strict_json.from_json(line.decode())
        self.metrics.append({"step": int(record["step"]), **_rounded_metrics(record)})

    def _journal_lines(self, journal: str, step: int) -> Sequence[bytes]:
        begin, end = self.journal_index.byte_ranges[journal].get(step, (0, 0))
        if not end:
            return []
        with (self.folder / f"{journal}.jsonl").open("rb") as file:
            file.seek(begin)
            return file.read(end - begin).splitlines()

    def _read_json(self, name: str) -> JsonObject:
        path = self.folder / name
        return self._record_errors(
            name, {}, lambda: _parse_object(path.read_text()) if path.exists() else {}
        )

    def _checkpoint_scores(self) -> JsonObject:
        """The scores of held-out tasks that the newest checkpoint holds."""
        pointer = self.folder / "checkpoints" / "latest"
        named = self._record_errors("checkpoints", "", lambda: _first_word(pointer))
        if named and named != self.latest_checkpoint:
            self.latest_checkpoint, self.checkpoint_data = (
                named,
                self._read_json(f"checkpoints/{named}/data.json"),
            )
        return _nested_object(self.checkpoint_data, "scores")

    def _record_errors(self, where: str, otherwise: T, work: Callable[[], T]) -> T:
        """What `work` gives; what keeps it from giving anything is a problem to be shown."""
        try:
            found = work()
        except OSError as error:
            self.read_errors[where] = error.strerror or str(error)
        except (ValueError, LookupError, TypeError, AttributeError) as error:
            self.read_errors[where] = f"cannot be read. {type(error).__name__}: {error}"
        else:
            self.read_errors.pop(where, None)
            return found
        return otherwise


def _rounded_metrics(record: JsonObject) -> JsonObject:
    return {name: round_digits(x) for name, x in record.items() if name != "step"}


def _parse_object(text: str) -> JsonObject:
    found = strict_json.from_json(text)
    if not isinstance(found, Mapping):
        raise ValueError(f"it holds {text[:20]!r}, no object")
    return found


def _nested_object(data: JsonObject, name: str) -> JsonObject:
    found = data.get(name)
    return found if isinstance(found, Mapping) else {}


def _first_word(pointer: Path) -> str:
    return pointer.read_text().partition(" ")[0] if pointer.exists() else ""
