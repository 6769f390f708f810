"""The least help that is enough, for one rollout of a group."""

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from grupo.core.component import component
from grupo.core.interfaces import Actor, Env, run_rollout, score_group
from grupo.core.types import Group, Rollout, Task
from grupo.rollouts.samplers.hints import all_incorrect, append_to_prompt, rollout_with_hidden_hint
from grupo.rollouts.samplers.wrapper import SamplerWrapper


@component
class WithScaffold(SamplerWrapper):
    """The inner sampler's group; where all of it is wrong, one makes room for one that was helped.

    The task's column `column` holds its hints in tiers, weakest first, each a text or a list of
    texts. A level shows one tier up to one of its texts; each of the first `levels` is tried once,
    and the lowest that is right replaces the group's first rollout. Its source is "scaffolded", and
    the hint stays in its context unless it is `hidden`. `levels` may be a schedule: a warm-up is
    `Switch(0.15, 0.0, 12.0)`. A rollout is right where its reward is above `right`.

    Scaf-GRPO, Zhang et al. (arXiv:2510.19807).
    """

    max_levels: float = 12.0
    column: str = "hints"
    prefix_text: str = "\n\nHint: "
    success_threshold: float = 0.5
    hide_hint: bool = False

    @property
    def required_columns(self) -> tuple[str, ...]:
        """The columns of tasks that it reads."""
        return (self.column,)

    async def __call__(self, task: Task, env: Env, actor: Actor) -> Group:
        group = await self.inner(task, env, actor)
        hints = hint_levels(task.columns, self.column)[: int(self.max_levels)]
        if not hints or not all_incorrect(group, self.success_threshold):
            return group
        plays = (
            self._play_with_hint(task, hint, env, actor.fork("level", i))
            for i, hint in enumerate(hints)
        )
        tried = (await score_group(task, env, await asyncio.gather(*plays))).rollouts
        right = [rollout for rollout in tried if rollout.reward > self.success_threshold]
        return replace(group, rollouts=(*right[:1], *group.rollouts[len(right[:1]) :]))

    async def _play_with_hint(self, task: Task, hint: str, env: Env, actor: Actor) -> Rollout:
        asked = append_to_prompt(task, self.prefix_text + hint)
        played = (
            rollout_with_hidden_hint(task, asked, env, actor)
            if self.hide_hint
            else run_rollout(asked, env, actor)
        )
        return replace(await played, source="scaffolded")


def hint_levels(columns: Mapping[str, Any], column: str) -> Sequence[str]:
    """What each level shows: a tier's texts so far, line by line; none where there is no column.

    >>> hint_levels({"hints": ["add", ["1 + 1", "1 + 1 = 2"]]}, "hints")
    ['add', '1 + 1', '1 + 1\\n1 + 1 = 2']
    """
    tiers = columns.get(column, ())
    texts = [[tier] if isinstance(tier, str) else list(tier) for tier in tiers]
    return ["\n".join(tier[: i + 1]) for tier in texts for i in range(len(tier))]
