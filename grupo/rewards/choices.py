"""Choices among several candidates: those of `grupo.rollouts.turns`, and by a reward."""

import inspect
import math
from collections.abc import Mapping, Sequence

from grupo.core.component import component, to_code
from grupo.core.interfaces import Actor
from grupo.core.types import Rollout, Task
from grupo.core.usage import add_external_usage
from grupo.rewards.base import Reward, RewardValue
from grupo.rollouts.turns.choices import ByHead, HeadVote, Likeliest, MostVoted
from grupo.rollouts.turns.pairwise_comparison import PairwiseComparison
from grupo.util.errors import ConfigError

__all__ = [
    "ByHead",
    "ByReward",
    "HeadVote",
    "Least",
    "Likeliest",
    "MostVoted",
    "PairwiseComparison",
]


@component
class ByReward:
    """The candidate with the largest reward, which sees the prompt and the candidates alone.

    The task that the reward receives has neither a reference answer nor columns, so a reward that
    compares with them is refused. Allowed are `LearnedReward`, judges and rules about the text. Of
    equal candidates the earliest one is chosen. The usage `choices/unscored` counts choices in
    which no candidate could be scored; the first one is then chosen.

    Args:
        reward: Scores the candidates.
    """

    reward: Reward

    async def __call__(self, actor: Actor, before: Rollout, candidates: Sequence[Rollout]) -> int:
        return _largest(await _numbers(self, candidates))


@component
class Least:
    """The candidate with the smallest reward, for rewards that measure a fault: `Overthinking`.

    Rewards are those of `ByReward`; a candidate that cannot be scored is chosen only if none can.

    Args:
        reward: Scores the candidates.
    """

    reward: Reward

    async def __call__(self, actor: Actor, before: Rollout, candidates: Sequence[Rollout]) -> int:
        numbers = await _numbers(self, candidates)
        return _largest([None if number is None else -number for number in numbers])


async def _numbers(choice: ByReward | Least, candidates: Sequence[Rollout]) -> list[float | None]:
    """The reward of each candidate without the task; None for one that cannot be scored."""
    prompt, _ = candidates[0].turns[0]
    try:
        values = choice.reward(Task("choice", prompt), candidates)
        return [_number(x) for x in (await values if inspect.isawaitable(values) else values)]
    except (ConfigError, KeyError, TypeError) as error:
        name = f"{type(choice).__name__}({to_code(choice.reward)})"
        raise ConfigError(
            f"strategy: {name} could not score without the task's reference answer and columns,"
            f" which a strategy does not see: {error}. Allowed: rewards that read the answer alone,"
            " such as LearnedReward or a judge."
        ) from error


def _largest(numbers: Sequence[float | None]) -> int:
    """Index of the first largest number; 0, counted as usage, if there is none."""
    scored = [-math.inf if number is None else number for number in numbers]
    add_external_usage({"choices/unscored": float(all(x is None for x in numbers))})
    return scored.index(max(scored))


def _number(value: RewardValue | Exception) -> float | None:
    """The reward as a number; None if there is none."""
    if isinstance(value, Mapping):
        value = value["score"]
    is_number = isinstance(value, int | float) and not math.isnan(value)
    return float(value) if is_number else None
