"""How often a policy solves tasks: greedy, sampled, and at least once in k attempts."""

import asyncio
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Protocol

import numpy as np

from grupo.core.component import piece
from grupo.core.event_loop import run
from grupo.core.interfaces import Act, Env, Turn, one_action
from grupo.core.rng import derive
from grupo.core.types import Group, Rollout, Task
from grupo.rollouts.samplers import Independent


class Acts(Protocol):
    """Whoever acts."""

    def act(self, key: int) -> Act: ...


@piece
class Solved:
    """A rollout solves its task if the part `part` of its reward, or all of it, is `at_least`."""

    part: str = ""
    at_least: float = 1.0

    def __call__(self, rollout: Rollout) -> bool:
        value = rollout.parts.get(self.part, math.nan) if self.part else rollout.reward
        return value >= self.at_least - 1e-9


@dataclass(frozen=True)
class Share:
    """A share of tasks with its 95 % bootstrap interval over tasks."""

    value: float
    low: float
    high: float

    def __str__(self) -> str:
        return f"{self.value:.3f} [{self.low:.3f}, {self.high:.3f}]"


@dataclass(frozen=True)
class Score:
    """What an evaluation found."""

    greedy: Share
    sampled: Share
    passes: Mapping[int, Share]  # k -> share of tasks solved at least once in k attempts
    failed: int = 0  # rollouts that could not be judged; their reward solves nothing

    def to_data(self) -> dict[str, Any]:
        """Shares by name, and their intervals; how many rollouts could not be judged."""
        named = {"greedy": self.greedy, "sampled": self.sampled}
        named |= {f"pass@{k}": share for k, share in self.passes.items()}
        shares = {name: share.value for name, share in named.items()}
        intervals = {name: [s.low, s.high] for name, s in named.items()}
        return {**shares, "intervals": intervals, "failed": self.failed}


def evaluate(
    policy: Acts,
    env: Env,
    tasks: Sequence[Task],
    *,
    attempts: int = 8,
    solved: Callable[[Rollout], bool] = Solved(),
    turn: Turn = one_action,
    key: int = 0,
) -> Score:
    """Attempt every task once greedily and `attempts` times as the policy samples.

    How it takes its turns is `turn`'s to say: `Budgeted(256, 64)` is what it solves in that.
    """
    greedy = play_all(policy.act(derive(key, "greedy")).at(top_k=1), env, tasks, 1, turn)
    sampled = play_all(policy.act(derive(key, "sampled")), env, tasks, attempts, turn)
    first = [float(solved(group.rollouts[0])) for group in greedy]
    right = [sum(map(solved, group.rollouts)) for group in sampled]
    ks = sorted({1, attempts, *(2**i for i in range(attempts.bit_length()) if 2**i <= attempts)})
    return Score(
        share(first),
        share([n / attempts for n in right]),
        {k: share([pass_at(k, attempts, n) for n in right]) for k in ks},
        sum(bool(rollout.failed) for group in (*greedy, *sampled) for rollout in group.rollouts),
    )


def play_all(
    act: Act, env: Env, tasks: Sequence[Task], attempts: int, turn: Turn = one_action
) -> list[Group]:
    """A group of `attempts` rollouts for every task."""

    async def together() -> list[Group]:
        sampler = Independent(attempts, turn)
        asked = (replace(task, attempts=attempts) for task in tasks)  # whatever they ask for
        plays = (sampler(task, env, act.fork(i)) for i, task in enumerate(asked))
        return list(await asyncio.gather(*plays))

    return run(together())


def pass_at(k: int, attempts: int, right: int) -> float:
    """Chance that k of n attempts, c of them right, hold a right one: 1 - C(n-c, k) / C(n, k).

    Chen et al., 2021, arXiv:2107.03374, eq. 1.

    >>> pass_at(2, 4, 1)
    0.5
    """
    return 1 - math.comb(attempts - right, k) / math.comb(attempts, k)


def share(values: Sequence[float], resamples: int = 2000) -> Share:
    """Mean over tasks, and where 95 % of the means of resampled tasks lie."""
    x = np.asarray(values, dtype=np.float64)
    draws = np.random.default_rng(0).integers(0, len(x), (resamples, len(x)))
    low, high = np.quantile(x[draws].mean(1), [0.025, 0.975])
    return Share(float(x.mean()), float(low), float(high))
