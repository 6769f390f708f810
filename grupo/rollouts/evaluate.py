"""How often a policy solves tasks: greedy, sampled, and at least once in k attempts."""

import asyncio
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Protocol

import numpy as np

from grupo.core.component import component
from grupo.core.event_loop import run_coroutine
from grupo.core.interfaces import Actor, Env, TurnStrategy, single_action
from grupo.core.rng import derive_key
from grupo.core.types import Group, Rollout, Task
from grupo.rollouts.samplers import GroupSampler


class HasActor(Protocol):
    """Whoever acts."""

    def actor(self, key: int) -> Actor: ...


@component
class SuccessCriterion:
    """A rollout solves its task if the part `part` of its reward, or all of it, is `min_reward`."""

    reward_term: str = ""
    min_reward: float = 1.0

    def __call__(self, rollout: Rollout) -> bool:
        value = (
            rollout.reward_terms.get(self.reward_term, math.nan)
            if self.reward_term
            else rollout.reward
        )
        return value >= self.min_reward - 1e-9


@dataclass(frozen=True)
class Proportion:
    """A share of tasks with its 95 % bootstrap interval over tasks."""

    value: float
    low: float
    high: float

    def __str__(self) -> str:
        return f"{self.value:.3f} [{self.low:.3f}, {self.high:.3f}]"


@dataclass(frozen=True)
class EvalResult:
    """What an evaluation found."""

    greedy: Proportion
    sampled: Proportion
    pass_at_k: Mapping[int, Proportion]  # k -> share of tasks solved at least once in k attempts
    num_failed: int = 0  # rollouts that could not be judged; their reward solves nothing

    def to_data(self) -> dict[str, Any]:
        """Shares by name, and their intervals; how many rollouts could not be judged."""
        named = {"greedy": self.greedy, "sampled": self.sampled}
        named |= {f"pass@{k}": share for k, share in self.pass_at_k.items()}
        shares = {name: share.value for name, share in named.items()}
        intervals = {name: [s.low, s.high] for name, s in named.items()}
        return {**shares, "intervals": intervals, "failed": self.num_failed}


def evaluate(
    policy: HasActor,
    env: Env,
    tasks: Sequence[Task],
    *,
    attempts: int = 8,
    success: Callable[[Rollout], bool] = SuccessCriterion(),
    turn_strategy: TurnStrategy = single_action,
    key: int = 0,
) -> EvalResult:
    """Attempt every task once greedily and `attempts` times as the policy samples.

    How it takes its turns is `turn`'s to say: `Budgeted(256, 64)` is what it solves in that.
    """
    greedy = run_rollouts(
        policy.actor(derive_key(key, "greedy")).with_sampling(top_k=1), env, tasks, 1, turn_strategy
    )
    sampled = run_rollouts(
        policy.actor(derive_key(key, "sampled")), env, tasks, attempts, turn_strategy
    )
    first = [float(success(group.rollouts[0])) for group in greedy]
    right = [sum(map(success, group.rollouts)) for group in sampled]
    ks = sorted({1, attempts, *(2**i for i in range(attempts.bit_length()) if 2**i <= attempts)})
    return EvalResult(
        bootstrap_proportion(first),
        bootstrap_proportion([n / attempts for n in right]),
        {k: bootstrap_proportion([pass_at_k(k, attempts, n) for n in right]) for k in ks},
        sum(bool(rollout.error) for group in (*greedy, *sampled) for rollout in group.rollouts),
    )


def run_rollouts(
    actor: Actor,
    env: Env,
    tasks: Sequence[Task],
    attempts: int,
    turn_strategy: TurnStrategy = single_action,
) -> list[Group]:
    """A group of `attempts` rollouts for every task."""

    async def together() -> list[Group]:
        sampler = GroupSampler(attempts, turn_strategy)
        asked = (replace(task, group_size=attempts) for task in tasks)  # whatever they ask for
        plays = (sampler(task, env, actor.fork(i)) for i, task in enumerate(asked))
        return list(await asyncio.gather(*plays))

    return run_coroutine(together())


def pass_at_k(k: int, attempts: int, num_correct: int) -> float:
    """Chance that k of n attempts, c of them right, hold a right one: 1 - C(n-c, k) / C(n, k).

    Chen et al., 2021, arXiv:2107.03374, eq. 1.

    >>> pass_at_k(2, 4, 1)
    0.5
    """
    return 1 - math.comb(attempts - num_correct, k) / math.comb(attempts, k)


def bootstrap_proportion(values: Sequence[float], resamples: int = 2000) -> Proportion:
    """Mean over tasks, and where 95 % of the means of resampled tasks lie."""
    x = np.asarray(values, dtype=np.float64)
    draws = np.random.default_rng(0).integers(0, len(x), (resamples, len(x)))
    low, high = np.quantile(x[draws].mean(1), [0.025, 0.975])
    return Proportion(float(x.mean()), float(low), float(high))
