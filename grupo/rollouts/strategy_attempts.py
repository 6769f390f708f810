"""Attempts of a turn strategy at tasks, with all tokens that an answer costs."""

import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from grupo.core.interfaces import Actor, EnvSpec, TurnStrategy
from grupo.core.response_use import generation_only
from grupo.core.types import Observation, Rollout, Task
from grupo.core.usage import add_external_usage, count_external_usage
from grupo.rollouts.evaluate import HasActor, run_rollouts
from grupo.util.rng import derive_key


@dataclass(frozen=True)
class StrategyAttempts:
    """Attempts at every task, each task once in each round.

    Args:
        rollouts: For each round, the scored rollout of each task.
        generated: Number of generated tokens by role, of all attempts.
        read: Number of read tokens by role, of all attempts.
        usage: Calls of other models and counts of choices within the strategy, by name.
        seconds: Time of generation and scoring.
    """

    rollouts: tuple[tuple[Rollout, ...], ...]
    generated: Mapping[str, int]
    read: Mapping[str, int]
    usage: Mapping[str, float]
    seconds: float

    @property
    def num_answers(self) -> int:
        """Number of attempts at all tasks."""
        return sum(map(len, self.rollouts))

    @property
    def tokens_per_answer(self) -> dict[str, float]:
        """Mean number of generated and of read tokens of an answer, by name."""
        totals = {"generated": sum(self.generated.values()), "read": sum(self.read.values())}
        return {name: total / self.num_answers for name, total in totals.items()}

    @property
    def errors(self) -> list[str]:
        """The errors of the attempts that could not be scored."""
        return [r.error for attempts in self.rollouts for r in attempts if r.error]

    def solved(self, success: Callable[[Rollout], bool]) -> np.ndarray:
        """A matrix (rounds, tasks): 1 for an attempt that solves its task, else 0.

        An attempt that could not be scored has not solved its task.
        """
        return np.array([[float(success(r)) for r in attempts] for attempts in self.rollouts])

    def __add__(self, other: "StrategyAttempts") -> "StrategyAttempts":
        return StrategyAttempts(
            (*self.rollouts, *other.rollouts),
            dict(Counter(self.generated) + Counter(other.generated)),
            dict(Counter(self.read) + Counter(other.read)),
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


def attempt_tasks(
    policy: HasActor,
    env: EnvSpec,
    tasks: Sequence[Task],
    strategy: TurnStrategy,
    *,
    rounds: range,
    key: int,
    top_k: int = 0,
) -> StrategyAttempts:
    """Attempt every task once in each round.

    A round has an actor of its own, whose prefix cache is empty. The prompt of a task is therefore
    read once for each answer, as in a use that needs a single answer. A text with which the prompts
    of several tasks begin is read once in a round.

    Args:
        policy: Generates the rollouts.
        env: The environment, which replies and scores.
        tasks: The tasks.
        strategy: Generates the response to one observation.
        rounds: Numbers of the rounds, from which their random streams are derived.
        key: Number from which the random streams are derived.
        top_k: Tokens are sampled among this number of likeliest tokens: 1 for greedy answers, 0 for
            the policy's own setting.
    """
    generated, read, usage = Counter[str](), Counter[str](), Counter[str]()
    rollouts = []
    started = time.monotonic()
    counted = WithOwnUsage(strategy, usage)
    for number in rounds:
        with generation_only():  # an actor made here keeps no activations for an update
            actor = policy.actor(derive_key(key, "round", number))
        groups = run_rollouts(actor.with_sampling(top_k=top_k), env, tasks, 1, counted)
        rollouts.append(tuple(group.rollouts[0] for group in groups))
        generated.update(actor.generated_tokens)
        read.update(actor.read_tokens)
    seconds = time.monotonic() - started
    counts = {name: float(count) for name, count in usage.items()}
    return StrategyAttempts(tuple(rollouts), dict(generated), dict(read), counts, seconds)
