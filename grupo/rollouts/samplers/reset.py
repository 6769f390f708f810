"""Resets: rollouts that start in the middle of a demonstration."""

import asyncio
from collections.abc import Sequence
from dataclasses import replace

from grupo.core.component import component
from grupo.core.interfaces import Actor, Env, score_group
from grupo.core.numbers import Fraction
from grupo.core.paper import Paper, Source
from grupo.core.requires import Requires
from grupo.core.types import Group, Rollout, Task
from grupo.rollouts.samplers.independent import GroupSampler
from grupo.rollouts.samplers.prefixes import Prefix, continue_rollout, prefix_at


@component
class Reset(GroupSampler):
    """Independent rollouts that all start from one random state of a demonstration.

    With probability `chance`, the rollouts of a group begin with the first h items (tokens) of the
    demonstration. h is drawn uniformly from 0 to the demonstration's length minus 1. These items
    are not trained on, and the policy continues to the end of the task. Otherwise, if h is 0, or if
    the task has no demonstration, the rollouts are the same bits as with `GroupSampler`.

    DRPO, Chang et al. (arXiv:2404.08495).

    Args:
        group_size: Number of rollouts in a group.
        turn_strategy: Generates the response to one observation, after the demonstration.
        column: Column of the demonstration: a text, or the texts of its turns in order.
        chance: Probability that a group is reset (beta in the paper).
    """

    column: str = "solution"
    chance: Fraction = 1.0

    @property
    def requires(self) -> Requires:
        return Requires(columns=(self.column,))

    async def __call__(self, task: Task, env: Env, actor: Actor) -> Group:
        prefix = await self._draw_prefix(task, env, actor)
        rollouts = await asyncio.gather(
            *(
                continue_rollout(task, env, actor.fork(i), prefix, self.turn_strategy)
                for i in range(task.group_size or self.group_size)
            )
        )
        return await score_group(task, env, rollouts)

    async def _draw_prefix(self, task: Task, env: Env, actor: Actor) -> Prefix:
        rng = actor.rng("reset")
        if self.column not in task.columns or rng.random() >= self.chance:
            return Prefix()
        demonstration = await rolled_in(task, env, actor, task.columns[self.column])
        if not demonstration.length:
            return Prefix()
        return prefix_at(actor, demonstration, rng.randrange(demonstration.length))


async def rolled_in(task: Task, env: Env, actor: Actor, texts: str | Sequence[str]) -> Rollout:
    """The rollout of a demonstration in the environment; none of its items is trained on.

    Args:
        task: The task.
        env: Replies to the texts; it may end the rollout before the last text.
        actor: Encodes the texts.
        texts: The text of each turn, or the text of the only turn.
    """
    rollout = Rollout()
    for text in (texts,) if isinstance(texts, str) else texts:
        observation = await env.reply(task, rollout)
        if observation is None:
            break
        response = await actor.append_unsampled(rollout, observation, text)
        rollout = rollout.append_turn(observation, replace(response, in_loss=False))
    return rollout


PAPER = Paper(
    title="Dataset Reset Policy Optimization for RLHF",
    use="Rewards are too rare from the start of a task, and demonstrations are at hand.",
    tags=("off-policy", "sft"),
    kind="sampler",
    catalogue=("drpo-reset",),
    checked=("golden", "run"),
    source=Source(
        "code",
        "Cornell-RL/drpo, src/tldr/drpo.py: the mask of the demonstration, beta and the loss. The"
        " uniform cut is in a library that the code imports; its source is the catalogue's row",
    ),
    missing=("The reward model, the KL penalty and the critic: Reset combines with any method.",),
    deviations=(
        "The rollouts of a group share their beginning, and their mean reward estimates the value"
        " of that state. The paper trains by PPO, whose critic estimates this value.",
    ),
    shown=(
        "docs/guidance_shown/drpo_reset.md#dataset-reset-on-a-combination-lock",
        "docs/guidance_shown/hard_sums.md#results",
        "tests/rollouts/samplers/test_reset.py"
        "::test_rolled_in_tokens_are_not_trained_and_shared_by_the_group",
    ),
)
