"""What the policy said, and what it earned: a run's rollouts, chosen and shown."""

import heapq
import json
import math
from collections import deque
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rich.console import Group
from rich.panel import Panel
from rich.text import Text

from grupo.report.escape import literal
from grupo.report.read_run import Record, read_rollouts
from grupo.report.step_line import format_number


@dataclass(frozen=True)
class RolloutFilter:
    """Which rollouts: those that fit all that is said.

    A step as the journal counts, from 0; rewards from `min_reward` to `max_reward`; a text the
    answer contains; the first letters of a task's key; only those that failed to be judged.
    """

    step: int | None = None
    min_reward: float | None = None
    max_reward: float | None = None
    contains: str = ""
    task_prefix: str = ""
    failed_only: bool = False

    def __call__(self, rollout: Record) -> bool:
        return (
            self.step in (None, rollout["step"])
            and (self.min_reward is None or reward(rollout) >= self.min_reward)
            and (self.max_reward is None or reward(rollout) <= self.max_reward)
            and self.contains in rollout["text"]
            and rollout["task"].startswith(self.task_prefix)
            and (not self.failed_only or bool(rollout["failed"]))
        )


def select_rollouts(
    run_folder: Path,
    rollout_filter: RolloutFilter = RolloutFilter(),
    *,
    best: int | None = None,
    worst: int | None = None,
    limit: int = 10,
) -> list[Record]:
    """Rollouts of a run as the journal holds them: plain data, a reward that is none as "NaN".

    The `best` and the `largest_mismatch` by reward, or else the newest `limit`, of those that are wanted.
    """

    def found() -> Iterator[Record]:
        return filter(rollout_filter, read_rollouts(run_folder))

    if best is None and worst is None:
        return list(deque(found(), maxlen=limit))
    high = heapq.nlargest(best or 0, filter(_has_reward, found()), key=reward)
    low = heapq.nsmallest(worst or 0, filter(_has_reward, found()), key=reward)
    return [*high, *low]


def format_rollouts(selected: Sequence[Record]) -> Group:
    """Rollouts to read: prompt, answer, reward by part, advantage, step."""
    nothing = [Text("No rollout fits.")] * (not selected)
    return Group(*nothing, *map(_panel, selected))


def reward(rollout: Record) -> float:
    """What a rollout earned; NaN where it could not be judged."""
    return float(rollout["reward"])


def _has_reward(rollout: Record) -> bool:
    return not math.isnan(reward(rollout))


def _panel(rollout: Record) -> Panel:
    worth = ", ".join(f"{name} {format_number(float(x))}" for name, x in rollout["parts"].items())
    facts = [
        f"step {rollout['step']}",
        f"task {rollout['task'][:8]}",
        f"reward {format_number(reward(rollout))}" + f" ({worth})" * bool(worth),
        _advantage(rollout),
        f"{rollout['length']} actions" + ", cut off" * rollout["truncated"],
    ]
    said = [
        literal(_prompt(rollout["prompt"]), "dim"),
        literal(rollout["text"]),
        *[literal(rollout["failed"], "red")] * bool(rollout["failed"]),
    ]
    inside = [line for label, text in zip(_LABELS, said, strict=False) for line in (label, text)]
    return Panel(Group(literal(" | ".join(facts), "bold"), *inside))


_LABELS = (Text("prompt:", "cyan"), Text("answer:", "cyan"), Text("failed:", "red"))


def _advantage(rollout: Record) -> str:
    value = rollout["advantage"]
    return "not learned from" if value is None else f"advantage {float(value):+.3f}"


def _prompt(prompt: Any) -> str:
    """A chat as one message after another; what is not text as JSON."""
    if isinstance(prompt, str):
        return prompt
    messages = prompt if isinstance(prompt, list) else [prompt]
    return "\n".join(f"[{m['role']}] {_content_text(m['content'])}" for m in messages)


def _content_text(content: object) -> str:
    return content if isinstance(content, str) else json.dumps(content, ensure_ascii=False)
