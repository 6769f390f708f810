"""An index of a run's journals: byte ranges of each step, and summaries of its groups."""

import re
from collections.abc import Sequence
from itertools import groupby, zip_longest
from typing import Any

from grupo.report.html.tool_calls import with_calls
from grupo.report.read_run import Record
from grupo.storage import strict_json

STEP_PATTERN = re.compile(rb'\{"step": (\d+)')
PREVIEW_LENGTH = 120  # characters of a prompt in the list of groups
ByteRange = tuple[int, int]  # begin, end


class JournalIndex:
    """Group summaries by step, previews of prompts by task, and byte ranges by journal and step."""

    def __init__(self) -> None:
        self.groups: dict[int, list[dict[str, Any]]] = {}
        self.prompts: dict[str, str] = {}  # by task key
        self.byte_ranges: dict[str, dict[int, ByteRange]] = {"rollouts": {}, "actions": {}}

    def add_rollout(self, offset: int, line: bytes) -> None:
        """Index a line of `rollouts.jsonl`; malformed lines raise."""
        record = strict_json.from_json(line.decode())
        step = int(record["step"])
        task = str(record["task"])
        groups = self.groups.setdefault(step, [])
        if not groups or groups[-1]["task"] != task:
            counts = {"failed": 0, "truncated": 0}
            groups.append({"task": task, "rewards": [], "lengths": [], **counts})
            self.prompts.setdefault(task, prompt_preview(record.get("prompt", "")))
        group = groups[-1]
        group["rewards"].append(round_digits(record["reward"]))
        group["lengths"].append(record.get("length", 0))
        group["failed"] += bool(record.get("error"))
        group["truncated"] += bool(record.get("truncated"))
        self._extend_range("rollouts", step, offset, line)

    def add_action(self, offset: int, line: bytes) -> None:
        """Index a line of `actions.jsonl`; only its step is parsed."""
        if not (match := STEP_PATTERN.match(line)):
            raise ValueError("the line does not begin with a step")
        self._extend_range("actions", int(match[1]), offset, line)

    def _extend_range(self, journal: str, step: int, offset: int, line: bytes) -> None:
        first, _ = self.byte_ranges[journal].get(step, (offset, offset))
        self.byte_ranges[journal][step] = first, offset + len(line)


def join_journals(rollouts: Sequence[bytes], actions: Sequence[bytes]) -> list[dict[str, Any]]:
    """The journal lines of a step as groups; each rollout gets its actions."""
    records = [strict_json.from_json(line.decode()) for line in rollouts]
    traces = [strict_json.from_json(line.decode())["actions"] for line in actions][: len(records)]
    joined = [{**r, "actions": with_calls(a or [])} for r, a in zip_longest(records, traces)]
    groups = []
    for task, members in groupby(joined, key=lambda r: str(r["task"])):
        group = list(members)
        payload = list(map(_rollout_payload, group))
        groups.append({"task": task, "prompt": group[0].get("prompt", ""), "rollouts": payload})
    return groups


def prompt_preview(prompt: Any) -> str:
    """The beginning of a prompt, or of a chat's last message, in one line."""
    last = prompt[-1] if isinstance(prompt, list) and prompt else prompt
    content = last.get("content", "") if isinstance(last, dict) else last
    line = " ".join(str(content).split())
    return line[:PREVIEW_LENGTH] + "…" * (len(line) > PREVIEW_LENGTH)


def round_digits(number: Any) -> Any:
    """A float with six significant digits; other values unchanged."""
    return float(f"{number:.6g}") if isinstance(number, float) else number


def _rollout_payload(rollout: Record) -> dict[str, Any]:
    return {name: x for name, x in rollout.items() if name not in ("step", "task", "prompt")}
