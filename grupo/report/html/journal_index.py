"""Where in a run's journals the rollouts of a step lie, and in short what its groups came to."""

import re
from collections.abc import Sequence
from itertools import groupby, zip_longest
from typing import Any

from grupo.report.html.tool_calls import with_calls
from grupo.report.read_run import Record
from grupo.storage import strict_json

STEP_PATTERN = re.compile(rb'\{"step": (\d+)')
PREVIEW_LENGTH = 120  # characters by which a list shows a prompt
ByteRange = tuple[int, int]  # of bytes


class JournalIndex:
    """The groups of each step, and of each journal the bytes that a step lies in."""

    def __init__(self) -> None:
        self.groups: dict[int, list[dict[str, Any]]] = {}
        self.prompts: dict[str, str] = {}  # the beginning of each task's
        self.byte_ranges: dict[str, dict[int, ByteRange]] = {"rollouts": {}, "actions": {}}

    def add_rollout(self, offset: int, line: bytes) -> None:
        """Take in a line of `rollouts.jsonl`; raises where it is no rollout."""
        record = strict_json.from_json(line.decode())
        step, task = int(record["step"]), str(record["task"])
        groups = self.groups.setdefault(step, [])
        if not groups or groups[-1]["task"] != task:
            groups.append({"task": task, "rewards": [], "lengths": [], "failed": 0, "cut": 0})
            self.prompts.setdefault(task, prompt_preview(record.get("prompt", "")))
        group = groups[-1]
        group["rewards"].append(round_digits(record["reward"]))
        group["lengths"].append(record.get("length", 0))
        group["failed"] += bool(record.get("failed"))
        group["cut"] += bool(record.get("truncated"))
        self._extend_range("rollouts", step, offset, line)

    def add_action(self, offset: int, line: bytes) -> None:
        """Take in a line of `actions.jsonl`, unread but for its step."""
        if not (found := STEP_PATTERN.match(line)):
            raise ValueError("it does not begin with a step")
        self._extend_range("actions", int(found[1]), offset, line)

    def _extend_range(self, journal: str, step: int, offset: int, line: bytes) -> None:
        first, _ = self.byte_ranges[journal].get(step, (offset, offset))
        self.byte_ranges[journal][step] = first, offset + len(line)


def join_journals(rollouts: Sequence[bytes], actions: Sequence[bytes]) -> list[dict[str, Any]]:
    """The lines of a step as groups; what is known of actions goes with the rollout they are of."""
    read = [strict_json.from_json(line.decode()) for line in rollouts]
    acted = [strict_json.from_json(line.decode())["actions"] for line in actions][: len(read)]
    whole = [{**r, "actions": with_calls(a or [])} for r, a in zip_longest(read, acted)]
    groups = ((task, list(some)) for task, some in groupby(whole, key=lambda r: str(r["task"])))
    return [
        {
            "task": task,
            "prompt": some[0].get("prompt", ""),
            "rollouts": list(map(_rollout_payload, some)),
        }
        for task, some in groups
    ]


def prompt_preview(prompt: Any) -> str:
    """The beginning of a prompt in one line; of a chat, of what it says last."""
    last = prompt[-1] if isinstance(prompt, list) and prompt else prompt
    said = last.get("content", "") if isinstance(last, dict) else last
    line = " ".join(str(said).split())
    return line[:PREVIEW_LENGTH] + "…" * (len(line) > PREVIEW_LENGTH)


def round_digits(number: Any) -> Any:
    """A number in six digits; "NaN" stays what it is."""
    return float(f"{number:.6g}") if isinstance(number, float) else number


def _rollout_payload(rollout: Record) -> dict[str, Any]:
    return {name: x for name, x in rollout.items() if name not in ("step", "task", "prompt")}
