"""Rewards that are wrong on purpose: a diagnosis of what a policy can already do.

A policy that improves on a task under a random or an inverted reward did not learn the task from
the reward. Each corrupted reward stands inside `WhereFormatted`, so that it pays well-formed
answers alone.
"""

import inspect
from collections.abc import Callable, Sequence
from statistics import fmean
from typing import Any

from grupo.core.component import component
from grupo.core.paper import Paper, Source
from grupo.core.ranges import Probability
from grupo.core.types import Rollout, Task
from grupo.rewards.base import PerRolloutReward, Reward
from grupo.util.rng import make_rng


@component
class RandomReward(PerRolloutReward):
    """1 with a probability, else 0, whatever the answer.

    The draw belongs to the rollout's own random stream, so that a resumed run repeats it.

    Args:
        probability: Probability of 1.
        seed: Selects other draws.
    """

    probability: Probability = 0.5
    seed: int = 0

    @property
    def reward_range(self) -> tuple[float, float]:
        return (0.0, 1.0)

    def score(self, task: Task, rollout: Rollout) -> float:
        keys = [response.rng_key for _, response in rollout.turns]
        rng = make_rng(self.seed, "random reward", task.key, *keys)
        return float(rng.random() < self.probability)


@component
class MeanLogProb(PerRolloutReward):
    """Mean log-probability of the sampled tokens, in nats: entropy minimisation as a reward.

    >>> from grupo.core.types import Response
    >>> MeanLogProb().score(Task("k", "?"), Rollout((("?", Response((5, 6), (-0.5, -1.5))),)))
    -1.0
    """

    def score(self, task: Task, rollout: Rollout) -> float:
        logp = [x for _, response in rollout.turns if response.sampled for x in response.logp]
        return fmean(logp) if logp else 0.0


@component
class Inverted:
    """1 where the inner reward is not above 0, and 0 where it is.

    Args:
        inner: The reward, whose values are numbers or mappings with a "score".
    """

    inner: Reward

    async def __call__(self, task: Task, rollouts: Sequence[Rollout]) -> Sequence[Any]:
        values = await _values(self.inner, task, rollouts)
        return [_mapped(value, lambda x: float(x <= 0)) for value in values]


@component
class WhereFormatted:
    """1 where both the format and the inner reward are above 0, else 0.

    Args:
        inner: The reward, whose values are numbers or mappings with a "score".
        format: Above 0 for well-formed answers, such as `TagFormat()`.
    """

    inner: Reward
    format: PerRolloutReward

    async def __call__(self, task: Task, rollouts: Sequence[Rollout]) -> Sequence[Any]:
        formats = await _values(self.format, task, rollouts)
        values = await _values(self.inner, task, rollouts)
        return [
            _mapped(value, lambda x, well_formed=well_formed: float(well_formed > 0 and x > 0))
            for value, well_formed in zip(values, formats, strict=True)
        ]


async def _values(reward: Reward, task: Task, rollouts: Sequence[Rollout]) -> Sequence[Any]:
    values: Any = reward(task, rollouts)
    return await values if inspect.isawaitable(values) else values


def _mapped(value: Any, function: Callable[[float], float]) -> Any:
    """The function of a value's number; a value that is none, or an error, as it is."""
    if value is None or isinstance(value, Exception):
        return value
    return function(value["score"] if isinstance(value, dict) else value)


PAPER = Paper(
    title="Model-Task Alignment Drives Distinct RL Outcomes",
    kind="reward",
    use="To find out whether a policy learns a task or only shows what it could do before.",
    tags=("reward", "unsupervised", "exploration"),
    catalogue=("model-task-alignment",),
    source=Source(
        "code",
        "hkust-nlp/model-task-align-rl, src/syn_logic_reward.py and verl/trainer/ppo/core_algos.py,"
        " as the catalogue cites them",
    ),
    checked=("golden",),
    deviations=(
        "The majority vote is not in the released file: it is `MajorityVote` behind the format.",
        "The mean log-probability is the reward of the answer, not of its last token: with one"
        " return per answer the advantages are the same.",
    ),
    shown=("docs/small_claims.md#rewards-that-are-wrong-on-purpose",),
)
