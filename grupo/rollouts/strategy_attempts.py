"""Attempts of a turn strategy at tasks, with all tokens that an answer costs."""

import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Protocol

import numpy as np

from grupo.core.interfaces import Actor, Env, EnvSpec, TurnStrategy
from grupo.core.response_use import generation_only
from grupo.core.types import Group, Observation, Rollout, Task
from grupo.core.usage import add_external_usage, count_external_usage
from grupo.rollouts.evaluate import HasActor, sample_groups
from grupo.rollouts.samplers import GroupSampler, Sampler
from grupo.util.rng import derive_key


class AttemptProgress(Protocol):
    """Receives what a comparison of strategies has done, for a display."""

    def begin(self, name: str, answers: int) -> None:
        """Called before the answers of a strategy or of a baseline.

        Args:
            name: The strategy.
            answers: Number of its answers that are generated now.
        """
        ...

    def answered(self) -> None:
        """Called after each answer."""
        ...


class NoProgress:
    """Progress that is not shown."""

    def begin(self, name: str, answers: int) -> None:
        pass

    def answered(self) -> None:
        pass


@dataclass(frozen=True)
class StrategyAttempts:
    """Attempts at every task; attempt i is made at all tasks together.

    Args:
        rollouts: For each attempt, the scored rollout of each task.
        generated_by_role: Number of generated tokens by role, of all attempts.
        read_by_role: Number of read tokens by role, of all attempts.
        usage: Calls of other models and counts of choices within the strategy, by name.
        seconds: Time of generation and scoring.
    """

    rollouts: tuple[tuple[Rollout, ...], ...]
    generated_by_role: Mapping[str, int]
    read_by_role: Mapping[str, int]
    usage: Mapping[str, float]
    seconds: float

    @property
    def num_attempts(self) -> int:
        """Number of attempts at all tasks together."""
        return sum(map(len, self.rollouts))

    @property
    def mean_tokens_per_attempt(self) -> dict[str, float]:
        """Mean numbers of tokens of an attempt, by name: `generated` and `read`."""
        totals = {
            "generated": sum(self.generated_by_role.values()),
            "read": sum(self.read_by_role.values()),
        }
        return {name: total / self.num_attempts for name, total in totals.items()}

    @property
    def errors(self) -> list[str]:
        """The errors of the attempts that could not be scored."""
        return [r.error for attempts in self.rollouts for r in attempts if r.error]

    def solved(self, success: Callable[[Rollout], bool]) -> np.ndarray:
        """A matrix (attempts, tasks): 1 for an attempt that solves its task, else 0.

        An attempt that could not be scored has not solved its task.
        """
        return np.array([[float(success(r)) for r in attempts] for attempts in self.rollouts])

    def __add__(self, other: "StrategyAttempts") -> "StrategyAttempts":
        return StrategyAttempts(
            (*self.rollouts, *other.rollouts),
            dict(Counter(self.generated_by_role) + Counter(other.generated_by_role)),
            dict(Counter(self.read_by_role) + Counter(other.read_by_role)),
            dict(Counter(self.usage) + Counter(other.usage)),
            self.seconds + other.seconds,
        )


@dataclass(frozen=True)
class WithOwnUsage:
    """A turn strategy whose external usage is also added to a mapping of its own.

    Args:
        inner: The strategy.
        usage: Receives the usage of the strategy's turns, without the usage of reward functions.
    """

    inner: TurnStrategy
    usage: Counter[str]

    async def __call__(self, actor: Actor, rollout: Rollout, observation: Observation) -> Rollout:
        with count_external_usage() as usage:
            rollout = await self.inner(actor, rollout, observation)
        self.usage.update(usage)
        add_external_usage(usage)
        return rollout


@dataclass(frozen=True)
class WithProgress:
    """A sampler whose groups are announced when they are scored.

    Args:
        inner: The sampler.
        progress: Receives a call for each group.
    """

    inner: Sampler
    progress: AttemptProgress

    async def __call__(self, task: Task, env: Env, actor: Actor) -> Group:
        group = await self.inner(task, env, actor)
        self.progress.answered()
        return group


def attempt_tasks(
    policy: HasActor,
    env: EnvSpec,
    tasks: Sequence[Task],
    strategy: TurnStrategy,
    *,
    attempt_indices: range,
    key: int,
    top_k: int = 0,
    name: str = "",
    progress: AttemptProgress = NoProgress(),
) -> StrategyAttempts:
    """Attempt every task once for each index in `attempt_indices`.

    The attempts of an index have an actor of their own, whose prefix cache is empty. The prompt of
    a task is therefore read once for each answer, as in a use that needs a single answer. A text
    with which the prompts of several tasks begin is read once for each index.

    Args:
        policy: Generates the rollouts.
        env: The environment, which replies and scores.
        tasks: The tasks.
        strategy: Generates the response to one observation.
        attempt_indices: Numbers from which the random streams of the attempts are derived.
        key: Number from which the random streams are derived.
        top_k: Tokens are sampled among this number of likeliest tokens: 1 for greedy answers, 0 for
            the policy's own setting.
        name: The strategy, for the progress.
        progress: Receives a call for each answer.
    """
    progress.begin(name, len(attempt_indices) * len(tasks))
    generated, read, usage = Counter[str](), Counter[str](), Counter[str]()
    rollouts = []
    started = time.monotonic()
    sampler = WithProgress(GroupSampler(1, WithOwnUsage(strategy, usage)), progress)
    single = [replace(task, group_size=1) for task in tasks]
    for index in attempt_indices:
        with generation_only():  # this actor's engine keeps no activations for an update
            actor = policy.actor(derive_key(key, "round", index))
        groups = sample_groups(actor.with_sampling(top_k=top_k), env, single, sampler)
        rollouts.append(tuple(group.rollouts[0] for group in groups))
        generated.update(actor.generated_tokens)
        read.update(actor.read_tokens)
    seconds = time.monotonic() - started
    counts = {name: float(count) for name, count in usage.items()}
    return StrategyAttempts(tuple(rollouts), dict(generated), dict(read), counts, seconds)
