"""An index of a run's journals: byte ranges of groups and responses, and summaries of groups."""

import json
import re
from collections.abc import Sequence
from itertools import zip_longest
from typing import Any

from grupo.core.message_content import content_text
from grupo.envs.tools.formats import DEFAULT_FORMAT, ToolFormat
from grupo.report.html.tool_calls import may_contain_call, with_calls
from grupo.report.read_run import Record
from grupo.storage import strict_json

RESPONSES_PATTERN = re.compile(rb'\{"step": \d+, "group": \d+, "responses": (.+)\}\n?', re.DOTALL)
STEP_PATTERN = re.compile(rb'\{"step": (\d+)')
PREVIEW_LENGTH = 120  # characters of a prompt or an error in the list of groups
ByteRange = tuple[int, int]  # begin, end


class JournalIndex:
    """Group summaries by step, previews of prompts by task, and byte ranges of lines.

    `group_ranges` has the range of each group in `rollouts.jsonl` by step, and `response_ranges`
    that of each line of `responses.jsonl`: the first line is that of the first rollout of the step.
    """

    def __init__(self) -> None:
        self.groups: dict[int, list[dict[str, Any]]] = {}
        self.prompts: dict[str, str] = {}  # by task key
        self.group_ranges: dict[int, list[ByteRange]] = {}
        self.response_ranges: dict[int, list[ByteRange]] = {}

    def add_rollout(self, offset: int, line: bytes) -> None:
        """Index a line of `rollouts.jsonl`; malformed lines raise."""
        record = strict_json.from_json(line.decode())
        step = int(record["step"])
        task = str(record["task"])
        groups = self.groups.setdefault(step, [])
        ranges = self.group_ranges.setdefault(step, [])
        if not groups or groups[-1]["task"] != task:
            ranges.append((offset, offset))
            counts = {"failed": 0, "truncated": 0}
            groups.append({"task": task, "rewards": [], "lengths": [], **counts})
            self.prompts.setdefault(task, prompt_preview(record.get("prompt", "")))
        group = groups[-1]
        group["rewards"].append(round_digits(record["reward"]))
        group["lengths"].append(record.get("length", 0))
        if error := record.get("error"):
            group["failed"] += 1
            group.setdefault("error", _one_line(error))
        group["truncated"] += bool(record.get("truncated"))
        ranges[-1] = ranges[-1][0], offset + len(line)

    def add_response(self, offset: int, line: bytes) -> None:
        """Index a line of `responses.jsonl`; only its step is parsed."""
        if not (match := STEP_PATTERN.match(line)):
            raise ValueError("the line does not begin with a step")
        ranges = self.response_ranges.setdefault(int(match[1]), [])
        ranges.append((offset, offset + len(line)))

    def ranges_of_group(self, step: int, place: int) -> tuple[ByteRange, ByteRange]:
        """The byte ranges of a group in `rollouts.jsonl` and in `responses.jsonl`."""
        before = sum(len(group["rewards"]) for group in self.groups[step][:place])
        size = len(self.groups[step][place]["rewards"])
        responses = self.response_ranges.get(step, [])[before : before + size]
        response_range = (responses[0][0], responses[-1][1]) if responses else (0, 0)
        return self.group_ranges[step][place], response_range


def join_journals(
    rollouts: Sequence[bytes],
    responses: Sequence[bytes],
    tool_format: ToolFormat = DEFAULT_FORMAT,
) -> str:
    """A group as JSON: each rollout has its responses, or its turns if no responses were recorded.

    Responses are most of the bytes of a run: those without tool calls are copied as they are.

    Args:
        rollouts: The lines of `rollouts.jsonl`.
        responses: The lines of `responses.jsonl`.
        tool_format: How the policy writes tool calls.
    """
    records = [strict_json.from_json(line.decode()) for line in rollouts]
    group = {
        "task": str(records[0]["task"]),
        "prompt": records[0].get("prompt", ""),
        "reference_answer": records[0].get("reference_answer", ""),
    }
    joined = ",".join(_rollout_json(*pair, tool_format) for pair in zip_longest(records, responses))
    return _with_field(group, "rollouts", f"[{joined}]")


def prompt_preview(prompt: Any) -> str:
    """The beginning of a prompt, or of a chat's last message, in one line."""
    last = prompt[-1] if isinstance(prompt, list) and prompt else prompt
    content = last.get("content", "") if isinstance(last, dict) else last
    return _one_line(content_text(content) if isinstance(content, list) else content)


def round_digits(number: Any) -> Any:
    """A float with six significant digits; other values unchanged."""
    return float(f"{number:.6g}") if isinstance(number, float) else number


def _one_line(text: Any) -> str:
    line = " ".join(str(text).split())
    return line[:PREVIEW_LENGTH] + "…" * (len(line) > PREVIEW_LENGTH)


def _rollout_json(rollout: Record, line: bytes | None, tool_format: ToolFormat) -> str:
    shared = {"step", "task", "prompt", "reference_answer"} | ({"turns"} if line else set())
    fields = {name: x for name, x in rollout.items() if name not in shared}
    responses = _responses_json(line, tool_format) if line else "[]"
    return _with_field(fields, "responses", responses)


def _responses_json(line: bytes, tool_format: ToolFormat) -> str:
    """The responses of a line of `responses.jsonl`, with their tool calls, as JSON."""
    copied = RESPONSES_PATTERN.fullmatch(line)
    if copied and not may_contain_call(line, tool_format):
        return copied[1].decode()
    responses = strict_json.from_json(line.decode())["responses"]
    return _compact_json(with_calls(responses, tool_format))


def _with_field(data: Record, name: str, value: str) -> str:
    """An object with one more field, whose value is JSON."""
    separator = "," * bool(data)
    return f"{_compact_json(data)[:-1]}{separator}{_compact_json(name)}:{value}}}"


def _compact_json(data: Any) -> str:
    return json.dumps(data, separators=(",", ":"))
