"""Rollouts that somebody else worked out."""

from collections.abc import Callable, Sequence
from dataclasses import replace

from grupo.piece import piece
from grupo.rollout import Act, Env, Group, Rollout, Task


@piece
class Demonstrate:
    """Worked solutions in place of attempts: what `solve(task)` says is recited, for reward 1."""

    solve: Callable[[Task], Sequence[str]]

    async def __call__(self, task: Task, env: Env, act: Act) -> Group:
        return Group(
            task, tuple([await self._recite(task, env, act, text) for text in self.solve(task)])
        )

    async def _recite(self, task: Task, env: Env, act: Act, text: str) -> Rollout:
        start = Rollout(source="worked")
        seen = await env.reply(task, start)
        assert seen is not None, "a world that says nothing cannot be answered"
        return replace(start.then(seen, await act.recite(start, seen, text)), reward=1.0)
