"""A run's folder as a page reads it: whatever state it is in, and again while it changes."""

import os
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

from grupo.report.doctor import examine
from grupo.report.html.journal_index import Shelf, joined, short
from grupo.report.html.tail import Tail
from grupo.report.read_run import crash
from grupo.storage import strict_json

T = TypeVar("T")
Data = Mapping[str, Any]


class Book:
    """A run, read as far as it goes; what cannot be read is among its `problems`, never raised.

    `epoch` counts how often its journals were cut back, as they are when a run is resumed.
    """

    def __init__(self, folder: Path) -> None:
        self.folder, self.name, self.epoch = folder, folder.resolve().name, 0
        self._open()

    def refresh(self) -> None:
        """Read what is new."""
        if self.closed:
            return
        if any(self._tried(name, False, lambda t=tail: t.cut) for name, tail in self.tails.items()):
            self.epoch += 1
            self._open()
        takes = (("metrics", self._metrics), ("rollouts", self.shelf.rollout))
        for name, take in (*takes, ("actions", self.shelf.action)):
            self._tried(f"{name}.jsonl", None, partial(self._take, name, take))
        self.recipe = self.recipe or _inside(self._data("recipe.json"), "recipe")
        self.summary = self._data("summary.json")
        self.crash = (
            "" if self.summary else self._tried("crash.json", "", partial(crash, self.folder))
        )
        self.scores = _inside(self.summary, "held_out") or self._saved()
        if len(self.metrics) != self.examined and time.monotonic() >= self.due:
            self._examine()

    @property
    def closed(self) -> str:
        """Why nothing in the folder may be read; nothing if it may."""
        try:
            os.listdir(self.folder)
            os.stat(self.folder / ".")
        except OSError as error:
            return error.strerror or str(error)
        return ""

    def groups(self, step: int) -> list[dict[str, Any]]:
        """The groups of a step, with every action that is kept."""
        texts = partial(self._lines, "rollouts", step), partial(self._lines, "actions", step)
        return self._tried(f"step {step}", [], lambda: joined(*(text() for text in texts)))

    @property
    def written(self) -> float:
        """When a step was last written, in seconds since 1970; 0 if none was."""
        path = self.folder / "metrics.jsonl"
        return self._tried(path.name, 0.0, lambda: path.stat().st_mtime if self.metrics else 0.0)

    @property
    def problems(self) -> list[str]:
        """What could not be read, and why; what a process that died left unfinished."""
        if self.closed:
            return [f"the folder: {self.closed}"]
        torn = {name: self._tried(name, 0, lambda t=t: t.torn) for name, t in self.tails.items()}
        return [
            *[f"its process ended before the run did: {self.crash}"] * bool(self.crash),
            *(f"{where}: {why}" for where, why in self.broken.items()),
            *(
                f"{n}.jsonl: its last line is torn, {b} bytes left out"
                for n, b in torn.items()
                if b
            ),
        ]

    def _open(self) -> None:
        names = ("metrics", "rollouts", "actions")
        self.tails = {name: Tail(self.folder / f"{name}.jsonl") for name in names}
        self.metrics: list[Data] = []
        self.shelf, self.broken = Shelf(), dict[str, str]()
        self.recipe: Data = {}
        self.summary: Data = {}
        self.scores: Data = {}
        self.latest, self.checkpoint, self.crash = "", {}, ""
        self.findings: list[Data] = []
        self.examined, self.due = -1, 0.0

    def _examine(self) -> None:
        """Ask the doctor, who reads everything: at most a tenth of the time."""
        began, self.examined = time.monotonic(), len(self.metrics)
        found = self._tried("the doctor", [], lambda: examine(self.folder))
        self.findings = [asdict(finding) for finding in found]
        self.due = time.monotonic() + 9 * (time.monotonic() - began)

    def _take(self, name: str, take: Callable[[int, bytes], None]) -> None:
        for begin, line in self.tails[name]():
            self._tried(f"{name}.jsonl, byte {begin:,}", None, partial(take, begin, line))

    def _metrics(self, begin: int, line: bytes) -> None:
        record = strict_json.read(line.decode())
        self.metrics.append({"step": int(record["step"]), **_numbers(record)})

    def _lines(self, journal: str, step: int) -> Sequence[bytes]:
        begin, end = self.shelf.spans[journal].get(step, (0, 0))
        if not end:
            return []
        with (self.folder / f"{journal}.jsonl").open("rb") as file:
            file.seek(begin)
            return file.read(end - begin).splitlines()

    def _data(self, name: str) -> Data:
        path = self.folder / name
        return self._tried(name, {}, lambda: _mapping(path.read_text()) if path.exists() else {})

    def _saved(self) -> Data:
        """The scores of held-out tasks that the newest checkpoint holds."""
        pointer = self.folder / "checkpoints" / "latest"
        named = self._tried("checkpoints", "", lambda: _first(pointer))
        if named and named != self.latest:
            self.latest, self.checkpoint = named, self._data(f"checkpoints/{named}/data.json")
        return _inside(self.checkpoint, "scores")

    def _tried(self, where: str, otherwise: T, work: Callable[[], T]) -> T:
        """What `work` gives; what keeps it from giving anything is a problem to be shown."""
        try:
            found = work()
        except OSError as error:
            self.broken[where] = error.strerror or str(error)
        except (ValueError, LookupError, TypeError, AttributeError) as error:
            self.broken[where] = f"cannot be read. {type(error).__name__}: {error}"
        else:
            self.broken.pop(where, None)
            return found
        return otherwise


def _numbers(record: Data) -> Data:
    return {name: short(x) for name, x in record.items() if name != "step"}


def _mapping(text: str) -> Data:
    found = strict_json.read(text)
    if not isinstance(found, Mapping):
        raise ValueError(f"it holds {text[:20]!r}, no object")
    return found


def _inside(data: Data, name: str) -> Data:
    found = data.get(name)
    return found if isinstance(found, Mapping) else {}


def _first(pointer: Path) -> str:
    return pointer.read_text().partition(" ")[0] if pointer.exists() else ""
