"""Rewards of time spans in answers: temporal intersection over union with the reference span.

Li et al., 2025, arXiv:2506.01908 (Temporal-R1). An answer is a JSON object with the start and the
end in seconds; the reference answer is a sequence of two numbers or such an object.
"""

import math
import re
from collections.abc import Mapping, Sequence
from typing import Any

from grupo.core.component import component
from grupo.core.extract_answer import Extractor, InsideTag
from grupo.core.types import Rollout, Task
from grupo.rewards.base import PerRolloutReward
from grupo.util.errors import ConfigError
from grupo.util.json_text import parse_json

TimeSpan = tuple[float, float]  # start and end in seconds
KEYS = ("start_time", "end_time")
MAX_CHARS = 2_000
NUMBER = r'"(?:\d+(?:\.\d*)?|\.\d+)"'
FORMAT = re.compile(
    r"<think>.*?</think>\s*<answer>\s*"
    rf'\{{\s*"start_time"\s*:\s*{NUMBER}\s*,\s*"end_time"\s*:\s*{NUMBER}\s*\}}\s*</answer>',
    re.DOTALL,
)


def temporal_iou(a: TimeSpan, b: TimeSpan) -> float:
    """Length of the intersection over length from the earlier start to the later end.

    It is 0 without an intersection. The length is that of the union where the spans overlap.

    >>> temporal_iou((2, 6), (4, 8)), temporal_iou((0, 1), (2, 3))
    (0.3333333333333333, 0.0)
    """
    shared = min(a[1], b[1]) - max(a[0], b[0])
    return max(0.0, shared) / (max(a[1], b[1]) - min(a[0], b[0])) if shared > 0 else 0.0


def time_span(value: Any) -> TimeSpan | None:
    """A span of a sequence of two numbers or of an object with the two times; None if it is none.

    >>> time_span({"start_time": "2", "end_time": "6.5"}), time_span([1, 4]), time_span([1])
    ((2.0, 6.5), (1.0, 4.0), None)
    """
    if isinstance(value, Mapping):
        value = [value.get(key) for key in KEYS]
    if not isinstance(value, list | tuple) or len(value) != 2:
        return None
    try:
        start, end = map(float, value)
    except (TypeError, ValueError, OverflowError):
        return None
    return (start, end) if math.isfinite(start) and math.isfinite(end) else None


def answer_span(text: str, extract: Extractor) -> TimeSpan | None:
    """The span of the extracted JSON object; None if there is none."""
    answer = extract(text)
    if answer is None or len(answer) > MAX_CHARS:
        return None
    try:
        value = parse_json(answer)
    except ValueError:
        return None
    return time_span(value) if isinstance(value, Mapping) else None


@component
class TimeSpanIoU(PerRolloutReward):
    """Temporal intersection over union of the answer's span and the reference span.

    Args:
        extract: Finds the JSON object in the rollout's text.

    >>> from grupo.core.types import Response
    >>> text = '<answer>{"start_time": "2", "end_time": "6"}</answer>'
    >>> TimeSpanIoU()(Task("k", "?", (4, 8)), [Rollout((("?", Response((), (), text=text)),))])
    [0.3333333333333333]
    """

    extract: Extractor = InsideTag("answer")

    @property
    def reward_range(self) -> tuple[float, float]:
        return (0.0, 1.0)

    def score(self, task: Task, rollout: Rollout) -> float:
        span = answer_span(rollout.text, self.extract)
        return temporal_iou(span, reference_span(task)) if span else 0.0

    def validate_tasks(self, tasks: Sequence[Task]) -> None:
        """Raise `ConfigError` for a task whose reference answer is no span."""
        for task in tasks:
            reference_span(task)


def reference_span(task: Task) -> TimeSpan:
    """The task's reference answer as a span; raises `ConfigError` if it is none."""
    span = time_span(task.reference_answer)
    if span is None or span[0] >= span[1]:
        raise ConfigError(
            f"tasks: {task.location or task.key}: reference answer {task.reference_answer!r}."
            " Allowed: (start, end) in seconds with start < end."
        )
    return span


@component
class TimeSpanFormat(PerRolloutReward):
    """1 if the text is a block of thoughts and an answer with two times as strings, else 0.

    >>> from grupo.core.types import Response
    >>> text = '<think>…</think><answer>{"start_time": "2", "end_time": "6"}</answer>'
    >>> TimeSpanFormat()(Task("k", "?"), [Rollout((("?", Response((), (), text=text)),))])
    [1.0]
    """

    @property
    def reward_range(self) -> tuple[float, float]:
        return (0.0, 1.0)

    def score(self, task: Task, rollout: Rollout) -> float:
        return float(FORMAT.fullmatch(rollout.text) is not None)
