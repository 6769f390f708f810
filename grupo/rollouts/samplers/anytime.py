"""Thoughts that are answered at every budget."""

import asyncio
from dataclasses import replace
from itertools import pairwise

from grupo.core.component import piece
from grupo.core.interfaces import Act, Env, opening, play, scored
from grupo.core.types import Group, Observation, Rollout, Task


@piece
class Anytime:
    """`traces` thoughts, each answered `answers` times at every one of `budgets`, in tokens.

    Where a thought is cut, `hurry`, `close` and `header` are forced, and where it had come to its
    end, `header` alone; an answer has up to `solve` tokens. Who ends while thinking does not
    answer. Parts: `trace`; `budget`, 0 for the smallest; `cut`, that by which the thought is over,
    or was cut. The piece of thought before a cut is learned with the first answer there, elsewhere
    it is only read. Actions are marked `thought`: 1 there, 0 in answers.

    AnytimeReasoner, Qi et al. (arXiv:2505.13438).
    """

    traces: int = 8
    budgets: tuple[int, ...] = (2000, 4000, 6000, 8000)
    answers: int = 4
    solve: int = 118
    hurry: str = "...\n\n...\n\n"
    close: str = "</think>"
    header: str = "\n\n**Final Answer**\n"
    gives = ("trace", "budget", "cut")

    @property
    def n(self) -> int:
        """How many rollouts a group has."""
        return self.traces * len(self.budgets) * self.answers

    async def __call__(self, task: Task, env: Env, act: Act) -> Group:
        seen = await opening(task, env)
        budgets, answers = range(len(self.budgets)), range(self.answers)
        traces = range(max(1, (task.attempts or self.n) * self.traces // self.n))
        thoughts = await asyncio.gather(
            *(self._thought(act.fork("trace", i), seen) for i in traces)
        )
        places = [(i, s, a) for i in traces for s in budgets for a in answers]
        plays = (
            self._played(task, env, act.fork("answer", i, s, a), thoughts[i], s, a)
            for i, s, a in places
        )
        group = await scored(task, env, await asyncio.gather(*plays))
        told = (
            self._told(one, thoughts[i], i, s)
            for one, (i, s, _) in zip(group.rollouts, places, strict=True)
        )
        return replace(group, rollouts=tuple(told))

    async def _thought(self, act: Act, seen: Observation) -> Rollout:
        """A thought in one piece for each budget that it comes to."""
        said = Rollout()
        for done, budget in pairwise((0, *self.budgets)):
            room = budget - done
            more = await act.until(self.close, limit=room)(said, "" if done else seen)
            said = said.then("" if done else seen, more)
            if more.stopped != "length" or len(more.parts) < room:
                break
        return said

    async def _played(
        self, task: Task, env: Env, act: Act, thought: Rollout, budget: int, number: int
    ) -> Rollout:
        cut = self._cut(thought, budget)
        taught = cut if number == 0 and cut == budget else -1
        pieces = enumerate(thought.turns[: cut + 1])
        known = Rollout(tuple((seen, replace(a, learned=i == taught)) for i, (seen, a) in pieces))
        why = known.turns[-1][1].stopped
        if why != "end":
            forced = self.header if why == "stop" else self.hurry + self.close + self.header
            known = known.then("", await act.force(known, "", forced))
            known = known.then("", await act.until(limit=self.solve)(known, ""))
        return await play(task, env, act.fork("on"), known)

    def _cut(self, thought: Rollout, budget: int) -> int:
        return min(budget, len(thought.turns) - 1)

    def _told(self, rollout: Rollout, thought: Rollout, trace: int, budget: int) -> Rollout:
        cut = self._cut(thought, budget)
        length = sum(len(action.parts) for _, action in thought.turns[: cut + 1])
        marks = (1.0,) * length + (0.0,) * (rollout.length - length)
        parts = {"trace": float(trace), "budget": float(budget), "cut": float(cut)}
        more = {"parts": {**rollout.parts, **parts}, "marks": {**rollout.marks, "thought": marks}}
        return replace(rollout, **more)
