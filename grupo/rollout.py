"""What happens between a task and a batch: actions, rollouts, groups."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import chain
from typing import Any, Protocol

import torch
from torch import Tensor

from grupo.batch import Batch, Named, Past

Message = Mapping[str, Any]  # {"role": ..., "content": ...}
Observation = str | tuple[Message, ...]  # what the world says: plain text, or messages of a chat


@dataclass(frozen=True)
class Task:
    """What is asked, and what it takes to judge an answer."""

    key: str  # the same question has the same key, wherever it came from
    prompt: Observation
    answer: Any = None
    source: str = ""  # which family or file it is from
    columns: Mapping[str, Any] = field(
        default_factory=dict
    )  # the rest of its row, as reward functions read it
    attempts: int = 0  # how many rollouts the curriculum asks for; 0: as many as the sampler makes


@dataclass(frozen=True)
class Action:
    """One answer of the policy: its parts (tokens, latents, thoughts), each with its likelihood."""

    parts: tuple[Any, ...]
    logp: tuple[float, ...]  # of each part, under the distribution it was drawn from
    seen: tuple[Any, ...] = ()  # what the world said since the last action, as the policy read it
    text: str = ""
    stopped: str = "end"  # why it ended: "end" of text, "stop" string, "length" limit
    sampled: bool = True  # drawn from the policy; False: recited, and `logp` is 0


@dataclass(frozen=True)
class Rollout:
    """One attempt at a task: what was said and what was done, in turn, and what it was worth."""

    turns: tuple[tuple[Observation, Action], ...] = ()
    reward: float = float("nan")
    parts: Mapping[str, float] = field(default_factory=dict)  # the reward's components
    failed: str = ""  # why it could not be judged; such a rollout has no reward
    source: str = "policy"  # who made it: "policy", "worked" solution, an expert's name

    @property
    def text(self) -> str:
        """Everything the policy said."""
        return "".join(action.text for _, action in self.turns)

    @property
    def length(self) -> int:
        """How many actions the policy took."""
        return sum(len(action.parts) for _, action in self.turns)

    @property
    def truncated(self) -> bool:
        """Did the last action end only because it reached its length limit?"""
        return bool(self.turns) and self.turns[-1][1].stopped == "length"

    def then(self, seen: Observation, action: Action) -> "Rollout":
        """The same rollout, one turn longer."""
        return replace(self, turns=(*self.turns, (seen, action)))


@dataclass(frozen=True)
class Verdict:
    """What a rollout was worth, by part and in all, or why that could not be said."""

    reward: float = float("nan")
    parts: Mapping[str, float] = field(default_factory=dict)
    failed: str = ""


@dataclass(frozen=True)
class Group:
    """Rollouts that are compared with one another."""

    task: Task
    rollouts: tuple[Rollout, ...]

    @property
    def rewards(self) -> tuple[float, ...]:
        """The reward of each rollout."""
        return tuple(r.reward for r in self.rollouts)

    @property
    def informative(self) -> bool:
        """Do its rewards differ, so that comparing teaches something?"""
        return len(set(self.rewards)) > 1


class Act(Protocol):
    """All that a sampler knows of the policy: it acts, recites, and splits into random streams."""

    async def __call__(self, rollout: Rollout, seen: Observation) -> Action:
        """Go on with `rollout` after the world said `seen`."""
        ...

    async def recite(self, rollout: Rollout, seen: Observation, text: str) -> Action:
        """Say `text` as if the policy had: its parts, not sampled."""
        ...

    def fork(self, *label: object) -> "Act":
        """The same policy with a random stream of its own, named by `label`."""
        ...


class Env(Protocol):
    """The world: what it says next, None when it is over, and what rollouts are worth."""

    async def reply(self, task: Task, rollout: Rollout) -> Observation | None: ...

    async def score(self, task: Task, rollouts: Sequence[Rollout]) -> Sequence[Verdict]: ...


async def play(task: Task, env: Env, act: Act, rollout: Rollout = Rollout()) -> Rollout:
    """Go on with a rollout until the world says it is over."""
    while (seen := await env.reply(task, rollout)) is not None:
        rollout = rollout.then(seen, await act(rollout, seen))
    return rollout


async def scored(task: Task, env: Env, rollouts: Sequence[Rollout]) -> Group:
    """The group that these rollouts make once judged, those that could not be included."""
    verdicts = await env.score(task, rollouts)
    judged = (
        replace(r, reward=v.reward, parts=v.parts, failed=v.failed)
        for r, v in zip(rollouts, verdicts, strict=True)
    )
    return Group(task, tuple(judged))


Encode = Callable[[Sequence[Rollout]], Any]


def collate(
    groups: Sequence[Group], encode: Encode, past: Callable[[Task], Past] = lambda _: Past()
) -> Batch:
    """Groups of ragged rollouts as one rectangular batch, one row each.

    Columns count from a row's first action: what was said before it belongs to `encode(rollouts)`,
    the batch's `inputs`. What the world said later is masked. A group whose rollouts lack a part of
    the reward has 0 there.
    """
    rollouts = [r for group in groups for r in group.rollouts]
    rows = [_row(r) for r in rollouts]
    named = dict.fromkeys(chain.from_iterable(r.parts for r in rollouts))
    return Batch.of(
        reward=torch.tensor([r.reward for r in rollouts], dtype=torch.float64),
        group=torch.tensor(
            [p for p, group in enumerate(groups) for _ in group.rollouts], dtype=torch.long
        ),
        rollout=torch.arange(len(rows)),
        mask=_pad([row[0] for row in rows]).bool(),
        turn=_pad([row[1] for row in rows]).long(),
        old_logp=_pad([row[2] for row in rows]),
        seen=Named(
            {
                "logp@sampler": _pad([row[2] for row in rows]),
                "sampled": _pad([row[3] for row in rows]),
            }
        ),
        parts=Named(
            {
                p: torch.tensor([r.parts.get(p, 0.0) for r in rollouts], dtype=torch.float64)
                for p in named
            }
        ),
        past=tuple(past(group.task) for group in groups),
        inputs=encode(rollouts),
    )


def _row(rollout: Rollout) -> tuple[list[float], ...]:
    """Mask, turn, log-probability and whether it was sampled, of every column of a row."""
    mask, turn, logp, sampled = [], [], [], []
    for number, (_, action) in enumerate(rollout.turns):
        said, acted = len(action.seen) * (number > 0), len(action.parts)
        mask += [0.0] * said + [1.0] * acted
        turn += [float(number)] * (said + acted)
        logp += [0.0] * said + list(action.logp)
        sampled += [0.0] * said + [float(action.sampled)] * acted
    return mask, turn, logp, sampled


def _pad(rows: Sequence[Sequence[float]]) -> Tensor:
    width = max((len(row) for row in rows), default=0)
    padded = [[*row, *[0.0] * (width - len(row))] for row in rows]
    return torch.tensor(padded, dtype=torch.get_default_dtype()).reshape(len(rows), width)
