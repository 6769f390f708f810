"""`grupo rollouts`: select rollouts of a run and print them."""

import heapq
import json
import math
from collections import deque
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

from rich.console import Group
from rich.panel import Panel
from rich.text import Text

from grupo.report.escape import literal, literal_line
from grupo.report.read_run import Record, read_numbered_rollouts, read_rollouts
from grupo.report.step_line import format_number
from grupo.storage.media_files import file_name, is_reference
from grupo.util.errors import ConfigError
from grupo.util.run_files import MEDIA_FOLDER


@dataclass(frozen=True)
class RolloutFilter:
    """A predicate on rollouts: true where every given condition holds.

    Args:
        step: the step, counted from 1; None: any.
        min_reward, max_reward: the range of the reward, ends included; None: no bound.
        contains: a text that the generated text contains.
        task_prefix: the first letters of the task's key.
        failed_only: keep only rollouts that could not be scored.
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
            and (not self.failed_only or bool(rollout["error"]))
        )


def select_rollouts(
    run_folder: Path,
    rollout_filter: RolloutFilter = RolloutFilter(),
    *,
    best: int | None = None,
    worst: int | None = None,
    limit: int = 10,
) -> list[Record]:
    """Rollouts of a run as records of its journal, with `id`; a missing reward is "NaN".

    Args:
        run_folder: the folder of the run.
        rollout_filter: which rollouts to select from.
        best: how many of the highest reward.
        worst: how many of the lowest reward.
        limit: how many of the newest, if neither `best` nor `worst` is given.

    Raises:
        ConfigError: the folder holds no run, or its journal cannot be read.
    """

    def matching() -> Iterator[Record]:
        return filter(rollout_filter, read_numbered_rollouts(run_folder))

    if best is None and worst is None:
        return list(deque(matching(), maxlen=limit))
    high = heapq.nlargest(best or 0, filter(_has_reward, matching()), key=reward)
    low = heapq.nsmallest(worst or 0, filter(_has_reward, matching()), key=reward)
    return [*high, *low]


def check_step(run_folder: Path, step: int) -> None:
    """Raise `ConfigError` if the journal has no rollout of the step."""
    steps = {rollout["step"] for rollout in read_rollouts(run_folder)}
    if step not in steps:
        allowed = f"{min(steps)} to {max(steps)}" if steps else "none, as no step has ended"
        raise ConfigError(f"--step: {step}. Allowed: {allowed}.")


def format_rollouts(selected: Sequence[Record]) -> Group:
    """Rollouts as panels: prompt, reference answer, every turn, reward by term, advantage, step."""
    empty = [Text("No rollout matches.")] * (not selected)
    return Group(*empty, *map(_panel, selected))


def reward(rollout: Record) -> float:
    """The reward of a rollout; NaN if it could not be scored."""
    return float(rollout["reward"])


def _has_reward(rollout: Record) -> bool:
    return not math.isnan(reward(rollout))


def _panel(rollout: Record) -> Panel:
    terms = rollout["reward_terms"].items()
    shares = ", ".join(f"{name} {format_number(float(x))}" for name, x in terms)
    facts = [
        f"step {rollout['step']}",
        f"task {rollout['task'][:8]}",
        f"reward {format_number(reward(rollout))}" + f" ({shares})" * bool(shares),
        _advantage(rollout),
        f"{rollout['length']} actions" + ", truncated" * rollout["truncated"],
    ]
    parts = [
        _Part("prompt", chat_text(rollout["prompt"]), "dim"),
        _Part("reference answer", rollout.get("reference_answer", ""), "green"),
        *_turn_parts(rollout),
        _Part("not scored", rollout["error"], "red"),
    ]
    inside = [line for part in parts if part.text for line in part.lines()]
    style = "red" if rollout["error"] else "none"
    return Panel(Group(literal_line(" | ".join(facts), "bold"), *inside), border_style=style)


class _Part(NamedTuple):
    """A text of a panel below its label."""

    label: str
    text: str
    style: str = ""

    def lines(self) -> tuple[Text, Text]:
        return Text(f"{self.label}:", self.style or "cyan"), literal(self.text, self.style)


def _turn_parts(rollout: Record) -> Iterator[_Part]:
    """The texts of the policy, and the observations between them."""
    for turn in rollout.get("turns") or [{"text": rollout["text"]}]:
        yield _Part("environment", chat_text(turn.get("observation", "")), "yellow")
        yield _Part("policy", turn["text"])


def _advantage(rollout: Record) -> str:
    value = rollout["advantage"]
    return "not trained on" if value is None else f"advantage {float(value):+.3f}"


def chat_text(prompt: Any) -> str:
    """A chat as one message after another; of media the kinds and the files in the run's folder."""
    if isinstance(prompt, str):
        return prompt
    messages = prompt if isinstance(prompt, list) else [prompt]
    return "\n".join(f"[{m['role']}] {_content_text(m['content'])}" for m in messages)


def _content_text(content: object) -> str:
    if isinstance(content, list) and all(isinstance(part, dict) for part in content):
        return "".join(map(_part_text, content))
    return content if isinstance(content, str) else json.dumps(content, ensure_ascii=False)


def _part_text(part: Record) -> str:
    r"""A text, the file of an image, video or audio, or another part as JSON.

    >>> reference = {"media": "image/png", "kind": "image", "digest": "0f"}
    >>> _part_text({"type": "image", "image": reference})
    '[image media/0f.png]'
    """
    value: Any = part.get(part.get("type", ""), {})
    if is_reference(value):
        return f"[{value['kind']} {MEDIA_FOLDER}/{file_name(value)}]"
    text = part.get("text")
    return text if isinstance(text, str) else json.dumps(part, ensure_ascii=False)
