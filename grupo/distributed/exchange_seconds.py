"""Seconds that ranks need to exchange rollouts, measured on this machine."""

import random
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from grupo.core.types import Group, Response, Rollout, Task
from grupo.distributed.base import Channel
from grupo.distributed.exchange import exchange_groups
from grupo.distributed.phase import Phase

REPEATS = 5  # of which the fastest counts


@dataclass
class _OtherRank:
    """Rank 1 of 2, to which its own rollouts are returned as those of rank 0."""

    rank: int = 1
    size: int = 2
    calls: list[float] = field(default_factory=list)  # times

    def begin_step(self, number: int) -> None:
        pass

    def start_rank_report(self, file: Path) -> None:
        pass

    def exchange(self, data: bytes, phase: Phase, channel: Channel = "update") -> list[bytes]:
        self.calls.append(time.perf_counter())
        return [data]

    def sum(self, tensors: Sequence[object], phase: Phase) -> None:
        pass


def exchange_seconds(tokens: int = 500, rollouts: int = 32) -> tuple[float, float]:
    """Seconds in which a rank encodes a token for the others, and in which it decodes one of them.

    Args:
        tokens: Tokens of a rollout that is exchanged.
        rollouts: Number of rollouts that are exchanged.
    """
    rng = random.Random(0)
    task = Task("task", "prompt")
    group = Group(task, tuple(_random_rollout(rng, tokens) for _ in range(rollouts)))
    best = (float("inf"), float("inf"))
    for _ in range(REPEATS):
        other = _OtherRank()
        begin = time.perf_counter()
        exchange_groups(other, {0: group}, [task], Phase.ROLLOUTS_GENERATED, "generate")
        end = time.perf_counter()
        measured = other.calls[0] - begin, end - other.calls[0]
        best = (min(best[0], measured[0]), min(best[1], measured[1]))
    encode, decode = (seconds / (tokens * rollouts) for seconds in best)
    return encode, decode


def _random_rollout(rng: random.Random, tokens: int) -> Rollout:
    ids = tuple(rng.randrange(100_000) for _ in range(tokens))
    logp = tuple(-rng.random() for _ in ids)
    return Rollout((("prompt", Response(ids, logp, text="word " * tokens)),), reward=1.0)
