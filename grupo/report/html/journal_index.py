"""Where in a run's journals the rollouts of a step lie, and in short what its groups came to."""

import re
from collections.abc import Sequence
from itertools import groupby, zip_longest
from typing import Any

from grupo.report.html.tool_calls import with_calls
from grupo.report.read_run import Record
from grupo.storage import strict_json

STEP = re.compile(rb'\{"step": (\d+)')
HEAD = 120  # characters by which a list shows a prompt
Span = tuple[int, int]  # of bytes


class Shelf:
    """The groups of each step, and of each journal the bytes that a step lies in."""

    def __init__(self) -> None:
        self.groups: dict[int, list[dict[str, Any]]] = {}
        self.prompts: dict[str, str] = {}  # the beginning of each task's
        self.spans: dict[str, dict[int, Span]] = {"rollouts": {}, "actions": {}}

    def rollout(self, begin: int, line: bytes) -> None:
        """Take in a line of `rollouts.jsonl`; raises where it is no rollout."""
        record = strict_json.read(line.decode())
        step, task = int(record["step"]), str(record["task"])
        groups = self.groups.setdefault(step, [])
        if not groups or groups[-1]["task"] != task:
            groups.append({"task": task, "rewards": [], "lengths": [], "failed": 0, "cut": 0})
            self.prompts.setdefault(task, head(record.get("prompt", "")))
        group = groups[-1]
        group["rewards"].append(short(record["reward"]))
        group["lengths"].append(record.get("length", 0))
        group["failed"] += bool(record.get("failed"))
        group["cut"] += bool(record.get("truncated"))
        self._place("rollouts", step, begin, line)

    def action(self, begin: int, line: bytes) -> None:
        """Take in a line of `actions.jsonl`, unread but for its step."""
        if not (found := STEP.match(line)):
            raise ValueError("it does not begin with a step")
        self._place("actions", int(found[1]), begin, line)

    def _place(self, journal: str, step: int, begin: int, line: bytes) -> None:
        first, _ = self.spans[journal].get(step, (begin, begin))
        self.spans[journal][step] = first, begin + len(line)


def joined(rollouts: Sequence[bytes], actions: Sequence[bytes]) -> list[dict[str, Any]]:
    """The lines of a step as groups; what is known of actions goes with the rollout they are of."""
    read = [strict_json.read(line.decode()) for line in rollouts]
    acted = [strict_json.read(line.decode())["actions"] for line in actions][: len(read)]
    whole = [{**r, "actions": with_calls(a or [])} for r, a in zip_longest(read, acted)]
    groups = ((task, list(some)) for task, some in groupby(whole, key=lambda r: str(r["task"])))
    return [
        {"task": task, "prompt": some[0].get("prompt", ""), "rollouts": list(map(_said, some))}
        for task, some in groups
    ]


def head(prompt: Any) -> str:
    """The beginning of a prompt in one line; of a chat, of what it says last."""
    last = prompt[-1] if isinstance(prompt, list) and prompt else prompt
    said = last.get("content", "") if isinstance(last, dict) else last
    line = " ".join(str(said).split())
    return line[:HEAD] + "…" * (len(line) > HEAD)


def short(number: Any) -> Any:
    """A number in six digits; "NaN" stays what it is."""
    return float(f"{number:.6g}") if isinstance(number, float) else number


def _said(rollout: Record) -> dict[str, Any]:
    return {name: x for name, x in rollout.items() if name not in ("step", "task", "prompt")}
