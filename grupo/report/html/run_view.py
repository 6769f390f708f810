"""Fault-tolerant, incremental view of a run's folder, for the report and the watch display."""

import os
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

from grupo.report.doctor import examine
from grupo.report.html.journal_index import ByteRange, JournalIndex, join_journals, round_digits
from grupo.report.html.tail import JournalTail
from grupo.report.html.tool_calls import format_of_recipe
from grupo.report.kept_strategies import STRATEGIES_FILE, strategies_payload
from grupo.report.read_run import DAMAGE, crash_reason
from grupo.storage import strict_json
from grupo.storage.checkpoint_dirs import POINTER_FILE, step_and_repeat
from grupo.storage.media_files import data_url
from grupo.util.errors import ConfigError
from grupo.util.json_text import read_limited
from grupo.util.limits import GROUP_SIZE, JOURNAL_LINE, JSON_FILE_SIZE, METRICS_SIZE, Limit
from grupo.util.regular_files import check_file_size
from grupo.util.run_files import (
    CHECKPOINT_DATA_FILE,
    CHECKPOINTS_FOLDER,
    CRASH_FILE,
    JOURNAL_FILES,
    METRICS_FILE,
    RECIPE_JSON,
    SUMMARY_FILE,
)

T = TypeVar("T")
JsonObject = Mapping[str, Any]


class RunView:
    """The current content of a run's folder; read errors become `problems` and are never raised.

    `epoch` counts how often the journals were truncated, which happens when a run is resumed.

    Args:
        folder: the folder of the run.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.name = folder.resolve().name
        self.epoch = 0
        self.pipeline: Path | None = None  # whose stages are shown with this run
        self._reset()

    def refresh(self) -> None:
        """Read what was written since the last call."""
        if self.unreadable_reason:
            return
        tails = self.journal_tails.items()
        if any(self.record_errors(n, False, lambda t=tail: t.was_cut_back) for n, tail in tails):
            self.epoch += 1
            self._reset()
        consumers = {
            "metrics": self._add_metrics,
            "rollouts": self.journal_index.add_rollout,
            "responses": self.journal_index.add_response,
        }
        for name, add_line in consumers.items():
            read = partial(self._read_new_lines, name, add_line)
            self.record_errors(JOURNAL_FILES[name], None, read)
        self.recipe = self.recipe or _nested_object(self._read_json(RECIPE_JSON), "recipe")
        self.summary = self._read_json(SUMMARY_FILE)
        strategies = self._read_json(STRATEGIES_FILE)
        show = partial(strategies_payload, strategies, self.folder)
        self.strategies = self.record_errors(f"{STRATEGIES_FILE}, its table", {}, show)
        self.crash_reason = ""
        if not self.summary:
            read_reason = partial(crash_reason, self.folder)
            self.crash_reason = self.record_errors(CRASH_FILE, "", read_reason)
        self.eval_scores = _nested_object(self.summary, "held_out") or self._checkpoint_scores()
        has_new_steps = len(self.metrics) != self.examined_steps
        if has_new_steps and time.monotonic() >= self.next_examination_at:
            self._examine()

    @property
    def unreadable_reason(self) -> str:
        """Why the folder is not readable; "" if it is."""
        try:
            os.listdir(self.folder)
            os.stat(self.folder / ".")
        except OSError as error:
            return error.strerror or str(error)
        return ""

    def groups(self, step: int) -> list[dict[str, Any]]:
        """The groups of a step with their rollouts and recorded responses."""
        places = range(len(self.journal_index.groups.get(step, ())))
        texts = {place: self.group_json(step, place) for place in places}
        groups = [
            self.record_errors(
                f"step {step}, group {place}, its responses", {}, partial(_parse_object, text)
            )
            for place, text in texts.items()
            if text
        ]
        return [dict(group) for group in groups if group]

    def group_json(self, step: int, place: int) -> str:
        """A group with its rollouts and recorded responses as JSON; "" if it cannot be read."""

        def read() -> str:
            rollouts, responses = self.journal_index.ranges_of_group(step, place)
            return join_journals(
                self._lines("rollouts", rollouts),
                self._lines("responses", responses),
                format_of_recipe(self.recipe),
            )

        return self.record_errors(f"step {step}, group {place}", "", read)

    def media_url(self, digest: str) -> str:
        """The image, video or audio with a digest as a data URL; "" if it cannot be read."""
        return self.record_errors(f"media {digest}", "", lambda: data_url(self.folder, digest))

    @property
    def last_written_at(self) -> float:
        """The time of the last written step in seconds since 1970; 0 without steps."""
        path = self.folder / METRICS_FILE
        return self.record_errors(
            path.name, 0.0, lambda: path.stat().st_mtime if self.metrics else 0.0
        )

    @property
    def problems(self) -> list[str]:
        """Read errors, torn journals and a crash, as messages."""
        if self.unreadable_reason:
            return [f"the folder: {self.unreadable_reason}"]
        torn_bytes = {
            name: self.record_errors(name, 0, lambda t=tail: t.torn_bytes)
            for name, tail in self.journal_tails.items()
        }
        messages = [f"the training process crashed: {self.crash_reason}"] * bool(self.crash_reason)
        messages += [f"{source}: {reason}" for source, reason in self.read_errors.items()]
        for name, count in torn_bytes.items():
            if count:
                messages.append(
                    f"{JOURNAL_FILES[name]}: its last line is torn, {count} bytes left out"
                )
        return messages

    def _reset(self) -> None:
        self.journal_tails = {
            name: JournalTail(self.folder / file) for name, file in JOURNAL_FILES.items()
        }
        self.metrics: list[JsonObject] = []
        self.journal_index = JournalIndex()
        self.read_errors = dict[str, str]()
        self.recipe: JsonObject = {}
        self.summary: JsonObject = {}
        self.strategies: JsonObject = {}
        self.eval_scores: JsonObject = {}
        self.latest_checkpoint = ""
        self.checkpoint_data = {}
        self.crash_reason = ""
        self.findings: list[JsonObject] = []
        self.examined_steps = -1
        self.next_examination_at = 0.0

    def _examine(self) -> None:
        """Run the checks of the doctor; they read every journal, so at most a tenth of the time."""
        started_at = time.monotonic()
        self.examined_steps = len(self.metrics)
        findings = self.record_errors("doctor", [], lambda: examine(self.folder))
        self.findings = [asdict(finding) for finding in findings]
        self.next_examination_at = time.monotonic() + 9 * (time.monotonic() - started_at)

    def _read_new_lines(self, name: str, add_line: Callable[[int, bytes], None]) -> None:
        tail = self.journal_tails[name]
        if name == "metrics":
            check_file_size(tail.path, METRICS_SIZE)
        for begin, line in tail():
            add = partial(add_line, begin, line)
            self.record_errors(f"{JOURNAL_FILES[name]}, byte {begin:,}", None, add)

    def _add_metrics(self, offset: int, line: bytes) -> None:
        record = strict_json.from_json(line.decode())
        self.metrics.append({"step": int(record["step"]), **_rounded_metrics(record)})

    def _lines(self, journal: str, byte_range: ByteRange) -> Sequence[bytes]:
        begin, end = byte_range
        if not end:
            return []
        if end - begin > GROUP_SIZE.maximum:
            raise ConfigError(f"{end - begin:,} bytes. Allowed: {GROUP_SIZE.allowed}.")
        with (self.folder / JOURNAL_FILES[journal]).open("rb") as file:
            file.seek(begin)
            return file.read(end - begin).splitlines()

    def _read_json(self, name: str, limit: Limit = JSON_FILE_SIZE) -> JsonObject:
        path = self.folder / name
        if not path.exists():
            return self.record_errors(name, {}, dict)
        return self.record_errors(name, {}, lambda: _parse_object(read_limited(path, limit)))

    def _checkpoint_scores(self) -> JsonObject:
        """The held-out scores in the newest checkpoint."""
        pointer = self.folder / CHECKPOINTS_FOLDER / POINTER_FILE
        latest = self.record_errors(CHECKPOINTS_FOLDER, "", lambda: _pointed_name(pointer))
        if latest and latest != self.latest_checkpoint:
            self.latest_checkpoint = latest
            # it may hold rollouts that wait for their step
            name = f"{CHECKPOINTS_FOLDER}/{latest}/{CHECKPOINT_DATA_FILE}"
            self.checkpoint_data = self._read_json(name, JOURNAL_LINE)
        return _nested_object(self.checkpoint_data, "eval_scores")

    def record_errors(self, source: str, default: T, read: Callable[[], T]) -> T:
        """The result of `read`; if it raises, record the error of `source` and return `default`."""
        try:
            result = read()
        except OSError as error:
            self.read_errors[source] = error.strerror or str(error)
        except DAMAGE as error:
            self.read_errors[source] = f"cannot be read. {type(error).__name__}: {error}"
        else:
            self.read_errors.pop(source, None)
            return result
        return default


def _rounded_metrics(record: JsonObject) -> JsonObject:
    return {name: round_digits(x) for name, x in record.items() if name != "step"}


def _parse_object(text: str) -> JsonObject:
    data = strict_json.from_json(text)
    if not isinstance(data, Mapping):
        raise ValueError(f"{text[:20]!r} is not a JSON object")
    return data


def _nested_object(data: JsonObject, name: str) -> JsonObject:
    value = data.get(name)
    return value if isinstance(value, Mapping) else {}


def _pointed_name(pointer: Path) -> str:
    """The name of the folder that a pointer names; "" for a text that is no such name."""
    name = read_limited(pointer).partition(" ")[0] if pointer.exists() else ""
    is_checkpoint = name == Path(name).name and step_and_repeat(Path(name)) >= (0, 0)
    return name if is_checkpoint else ""
