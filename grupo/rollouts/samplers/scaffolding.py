"""The least help that is enough, for one rollout of a group."""

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from grupo.core.component import piece
from grupo.core.interfaces import Act, Env, play, scored
from grupo.core.types import Group, Rollout, Task
from grupo.rollouts.samplers.hints import all_wrong, told, without
from grupo.rollouts.samplers.wrapper import Around


@piece
class Scaffolded(Around):
    """The inner sampler's group; where all of it is wrong, one makes room for one that was helped.

    The task's column `column` holds its hints in tiers, weakest first, each a text or a list of
    texts. A level shows one tier up to one of its texts; each of the first `levels` is tried once,
    and the lowest that is right replaces the group's first rollout. Its source is "scaffolded", and
    the hint stays in its context unless it is `hidden`. `levels` may be a schedule: a warm-up is
    `Switch(0.15, 0.0, 12.0)`. A rollout is right where its reward is above `right`.

    Scaf-GRPO, Zhang et al. (arXiv:2510.19807).
    """

    levels: float = 12.0
    column: str = "hints"
    lead: str = "\n\nHint: "
    right: float = 0.5
    hidden: bool = False

    @property
    def reads_columns(self) -> tuple[str, ...]:
        """The columns of tasks that it reads."""
        return (self.column,)

    async def __call__(self, task: Task, env: Env, act: Act) -> Group:
        group = await self.inner(task, env, act)
        hints = shown(task.columns, self.column)[: int(self.levels)]
        if not hints or not all_wrong(group, self.right):
            return group
        plays = (
            self._helped(task, hint, env, act.fork("level", i)) for i, hint in enumerate(hints)
        )
        tried = (await scored(task, env, await asyncio.gather(*plays))).rollouts
        right = [rollout for rollout in tried if rollout.reward > self.right]
        return replace(group, rollouts=(*right[:1], *group.rollouts[len(right[:1]) :]))

    async def _helped(self, task: Task, hint: str, env: Env, act: Act) -> Rollout:
        asked = told(task, self.lead + hint)
        played = without(task, asked, env, act) if self.hidden else play(asked, env, act)
        return replace(await played, source="scaffolded")


def shown(columns: Mapping[str, Any], column: str) -> Sequence[str]:
    """What each level shows: a tier's texts so far, line by line; none where there is no column.

    >>> shown({"hints": ["add", ["1 + 1", "1 + 1 = 2"]]}, "hints")
    ['add', '1 + 1', '1 + 1\\n1 + 1 = 2']
    """
    tiers = columns.get(column, ())
    texts = [[tier] if isinstance(tier, str) else list(tier) for tier in tiers]
    return ["\n".join(tier[: i + 1]) for tier in texts for i in range(len(tier))]
