"""Answers on the way."""

import asyncio
from dataclasses import replace

from grupo.core.component import component
from grupo.core.interfaces import Actor, Env, initial_observation, run_rollout, score_group
from grupo.core.types import Group, Rollout, Task


@component
class EarlyExits:
    """One path of thought with its answer, and answers from `num_exits` places on the way there.

    At places drawn uniformly the thought is cut, `instruction` and `close` are forced, and an
    answer follows. The part `exit` is 0 for the earliest place, 1, 2 ... and highest for the whole
    path. A thought of fewer tokens has fewer exits.
    """

    num_exits: int = 7
    instruction: str = "\n\nTime is limited, stop thinking and start answering.\n"
    think_end: str = "</think>"
    provides = ("exit",)

    @property
    def group_size(self) -> int:
        """How many rollouts a group has."""
        return self.num_exits + 1

    async def __call__(self, task: Task, env: Env, actor: Actor) -> Group:
        seen = await initial_observation(task, env)
        thought = Rollout().append_turn(
            seen, await actor.with_stop(self.think_end)(Rollout(), seen)
        )
        places = await self._cut_positions(actor, thought, (task.group_size or self.group_size) - 1)
        early = (
            self._answer_early(actor.fork("exit", i), thought, at) for i, at in enumerate(places)
        )
        answered = await asyncio.gather(*early, self._answer_after_thinking(actor, thought))
        plays = (run_rollout(task, env, actor.fork("on", i), r) for i, r in enumerate(answered))
        group = await score_group(task, env, await asyncio.gather(*plays))
        ordered = enumerate(group.rollouts)
        told = (replace(r, reward_terms={**r.reward_terms, "exit": float(i)}) for i, r in ordered)
        return replace(group, rollouts=tuple(told))

    async def _cut_positions(self, actor: Actor, thinking: Rollout, count: int) -> list[int]:
        """After how many tokens to cut, somewhere before what ended the thought."""
        _, said = thinking.turns[-1]
        closed = len((await actor.prefill_forced(thinking, "", self.think_end)).items)
        length = len(said.items) - {"stop": closed, "end": 1}.get(said.finish_reason, 0)
        places = range(1, length + 1)
        return sorted(actor.rng("exits").sample(places, min(count, len(places))))

    async def _answer_early(self, actor: Actor, thinking: Rollout, length: int) -> Rollout:
        cut = actor.truncate(thinking, length)
        told = cut.append_turn(
            "", await actor.prefill_forced(cut, "", self.instruction + self.think_end)
        )
        return told.append_turn("", await actor(told, ""))

    async def _answer_after_thinking(self, actor: Actor, thinking: Rollout) -> Rollout:
        closed = thinking.turns[-1][1].finish_reason == "stop"
        return thinking.append_turn("", await actor(thinking, "")) if closed else thinking
