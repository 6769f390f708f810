"""Answers on the way."""

import asyncio
from dataclasses import replace

from grupo.core.component import piece
from grupo.core.interfaces import Act, Env, opening, play, scored
from grupo.core.types import Group, Rollout, Task


@piece
class EarlyExits:
    """One path of thought with its answer, and answers from `exits` places on the way there.

    At places drawn uniformly the thought is cut, `instruction` and `close` are forced, and an
    answer follows. The part `exit` is 0 for the earliest place, 1, 2 ... and highest for the whole
    path. A thought of fewer tokens has fewer exits.
    """

    exits: int = 7
    instruction: str = "\n\nTime is limited, stop thinking and start answering.\n"
    close: str = "</think>"
    gives = ("exit",)

    @property
    def n(self) -> int:
        """How many rollouts a group has."""
        return self.exits + 1

    async def __call__(self, task: Task, env: Env, act: Act) -> Group:
        seen = await opening(task, env)
        thought = Rollout().then(seen, await act.until(self.close)(Rollout(), seen))
        places = await self._places(act, thought, (task.attempts or self.n) - 1)
        early = (self._exit(act.fork("exit", i), thought, at) for i, at in enumerate(places))
        answered = await asyncio.gather(*early, self._whole(act, thought))
        plays = (play(task, env, act.fork("on", i), r) for i, r in enumerate(answered))
        group = await scored(task, env, await asyncio.gather(*plays))
        ordered = enumerate(group.rollouts)
        told = (replace(r, parts={**r.parts, "exit": float(i)}) for i, r in ordered)
        return replace(group, rollouts=tuple(told))

    async def _places(self, act: Act, thought: Rollout, count: int) -> list[int]:
        """After how many tokens to cut, somewhere before what ended the thought."""
        _, said = thought.turns[-1]
        closed = len((await act.force(thought, "", self.close)).parts)
        length = len(said.parts) - {"stop": closed, "end": 1}.get(said.stopped, 0)
        places = range(1, length + 1)
        return sorted(act.chance("exits").sample(places, min(count, len(places))))

    async def _exit(self, act: Act, thought: Rollout, parts: int) -> Rollout:
        cut = act.cut(thought, parts)
        told = cut.then("", await act.force(cut, "", self.instruction + self.close))
        return told.then("", await act(told, ""))

    async def _whole(self, act: Act, thought: Rollout) -> Rollout:
        closed = thought.turns[-1][1].stopped == "stop"
        return thought.then("", await act(thought, "")) if closed else thought
