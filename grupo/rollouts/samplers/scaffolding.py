"""Scaffolding: the weakest hint that suffices, for one rollout of a group."""

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from grupo.core.component import component
from grupo.core.interfaces import Actor, Env, run_rollout, score_group
from grupo.core.numbers import NonNegative, Number
from grupo.core.requires import Requires
from grupo.core.types import Group, Rollout, Task
from grupo.rollouts.samplers.hints import all_incorrect, append_to_prompt, rollout_with_hidden_hint
from grupo.rollouts.samplers.wrapper import SamplerWrapper


@component
class WithScaffold(SamplerWrapper):
    """Replaces the first rollout of an all-incorrect group by a correct one with a hint.

    The task's column `column` holds its hints in tiers, weakest first, each a text or a list of
    texts. A level is one tier up to one of its texts; each of the first `max_levels` levels is
    tried once, and the rollout of the lowest correct level, of source "with_scaffold", replaces the
    group's first rollout. `max_levels` may be a schedule: a warm-up is `Switch(0.15, 0.0, 12.0)`.

    Scaf-GRPO, Zhang et al. (arXiv:2510.19807).

    Args:
        inner: The sampler of the plain rollouts.
        max_levels: Levels that are tried.
        column: Column of the hints.
        prefix_text: Text before a hint.
        success_threshold: A rollout with a higher reward is correct.
        hide_hint: Move the rollout behind the plain prompt instead of keeping the hint.
    """

    max_levels: NonNegative = 12.0
    column: str = "hints"
    prefix_text: str = "\n\nHint: "
    success_threshold: Number = 0.5
    hide_hint: bool = False

    @property
    def requires(self) -> Requires:
        return Requires(columns=(self.column,))

    async def __call__(self, task: Task, env: Env, actor: Actor) -> Group:
        group = await self.inner(task, env, actor)
        hints = hint_levels(task.columns, self.column)[: int(self.max_levels)]
        if not hints or not all_incorrect(group, self.success_threshold):
            return group
        rollouts = await asyncio.gather(
            *(
                self._play_with_hint(task, hint, env, actor.fork("level", i))
                for i, hint in enumerate(hints)
            )
        )
        scored = (await score_group(task, env, rollouts)).rollouts
        correct = [rollout for rollout in scored if rollout.reward > self.success_threshold][:1]
        return replace(group, rollouts=(*correct, *group.rollouts[len(correct) :]))

    async def _play_with_hint(self, task: Task, hint: str, env: Env, actor: Actor) -> Rollout:
        hinted_task = append_to_prompt(task, self.prefix_text + hint)
        rollout = (
            rollout_with_hidden_hint(task, hinted_task, env, actor)
            if self.hide_hint
            else run_rollout(hinted_task, env, actor)
        )
        return replace(await rollout, source="with_scaffold")


def hint_levels(columns: Mapping[str, Any], column: str) -> Sequence[str]:
    """The hint of each level: the texts of a tier up to one of them, one per line.

    >>> hint_levels({"hints": ["add", ["1 + 1", "1 + 1 = 2"]]}, "hints")
    ['add', '1 + 1', '1 + 1\\n1 + 1 = 2']
    """
    tiers = columns.get(column, ())
    texts = [[tier] if isinstance(tier, str) else list(tier) for tier in tiers]
    return ["\n".join(tier[: i + 1]) for tier in texts for i in range(len(tier))]
