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
from grupo.util.errors import ConfigError

__all__ = ["ByHead", "ByReward", "HeadVote", "Likeliest", "MostVoted"]


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
        prompt, _ = candidates[0].turns[0]
        try:
            values = self.reward(Task("choice", prompt), candidates)
            scored = [_number(x) for x in (await values if inspect.isawaitable(values) else values)]
        except (ConfigError, KeyError, TypeError) as error:
            raise ConfigError(
                f"strategy: ByReward({to_code(self.reward)}) could not score without the task's"
                f" reference answer and columns, which a strategy does not see: {error}. Allowed:"
                " rewards that read the answer alone, such as LearnedReward or a judge."
            ) from error
        best = max(scored)
        add_external_usage({"choices/unscored": float(best == -math.inf)})
        return scored.index(best)


def _number(value: RewardValue | Exception) -> float:
    """The reward as a number; -inf if there is none."""
    if isinstance(value, Mapping):
        value = value["score"]
    is_number = isinstance(value, int | float) and not math.isnan(value)
    return float(value) if is_number else -math.inf
