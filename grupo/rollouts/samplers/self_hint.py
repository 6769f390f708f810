"""Hints that the policy gives itself, where nothing else helps."""

import asyncio
import re
from collections.abc import Callable, Sequence
from dataclasses import replace

from grupo.core.component import piece
from grupo.core.interfaces import Act, Env, play, scored
from grupo.core.types import Group, Observation, Rollout, Task
from grupo.rollouts.samplers.hints import all_wrong, gives_away, told
from grupo.rollouts.samplers.independent import Independent

HINTER = "hinter"  # the role of who hints
COACH = (
    "Somebody failed at this task. Write one hint, of three sentences at most, that leads to the"
    " right way without giving any number of the solution or its result.\n\nTask:\n{task}"
    "\n\nWrong attempt:\n{attempt}\n\nSolution, which the other must not learn:\n{solution}"
    "\n\nSay what went wrong, then the hint between <hint> and </hint>.\n"
)


@piece
class Asking:
    """What is shown to who hints: a {task}, a wrong {attempt}, a column as the {solution}."""

    form: str = COACH
    column: str = "solution"

    @property
    def reads_columns(self) -> tuple[str, ...]:
        """The columns of tasks that it reads."""
        return (self.column,)

    def __call__(self, task: Task, attempt: Rollout) -> Observation:
        prompt = task.prompt if isinstance(task.prompt, str) else _texts(task.prompt)
        solution = str(task.columns.get(self.column, task.answer))
        return self.form.format(task=prompt, attempt=attempt.text, solution=solution)


def between_tags(text: str) -> str:
    """What stands between <hint> and </hint>; nothing if nothing does.

    >>> between_tags("It forgot to carry. <hint> Carry! </hint>")
    'Carry!'
    """
    found = re.search(r"<hint>(.*?)</hint>", text, re.DOTALL | re.IGNORECASE)
    return found[1].strip() if found else ""


@piece
class Coached:
    """The inner sampler's group; where all of it is wrong, hints, and attempts that saw one each.

    The policy, or the one whose role is `hinter`, is asked for `hints` hints, shown what `ask(task,
    attempt)` says of a wrong attempt; `read` finds the hint in what it says. Behind each hint as
    many attempts are made as the group has, with `lead` and the hint at the end of the prompt. A
    hint that cannot be read, holds the task's answer or leaves no room is refused, and tried by
    nobody.

    Parts tell them apart: `role`, 1 for a hint and 0 for an attempt; `hint`, its number from 1 on,
    0 for none; `refused`, 1 where a hint was. A hint's reward is 0: what it is worth is a credit's
    to say. HiLL, Xia et al. (arXiv:2604.00698).
    """

    inner: Independent
    hints: int = 4
    ask: Callable[[Task, Rollout], Observation] = Asking()
    read: Callable[[str], str] = between_tags
    lead: str = "\n\n"
    right: float = 0.5
    roles = (HINTER,)

    @property
    def n(self) -> int:
        """How many rollouts a group has, hints and who saw one not counted."""
        return self.inner.n

    @property
    def gives(self) -> tuple[str, ...]:
        """The parts of the reward that it adds."""
        return ("role", "hint", "refused")

    async def __call__(self, task: Task, env: Env, act: Act) -> Group:
        group = await self.inner(task, env, act)
        plain = [_named(rollout) for rollout in group.rollouts]
        if not all_wrong(group, self.right):
            return replace(group, rollouts=tuple(plain))
        wrong = act.chance("wrong").choice([one for one in group.rollouts if not one.failed])
        asked = self.ask(task, wrong)
        hints = await asyncio.gather(
            *(self._hint(asked, act.fork("hint", i)) for i in range(1, self.hints + 1))
        )
        tried = await asyncio.gather(
            *(self._tried(task, i, hint, env, act) for i, hint in enumerate(hints, 1))
        )
        judged = await self._judged(task, env, tried)
        said = [_named(h, 1.0, i, not tried[i - 1]) for i, h in enumerate(hints, 1) if h.length]
        return replace(group, rollouts=(*plain, *said, *judged))

    async def _hint(self, asked: Observation, act: Act) -> Rollout:
        start = Rollout(source="hint", role=HINTER, reward=0.0)
        return start.then(asked, await act(start, asked))

    async def _tried(
        self, task: Task, number: int, hint: Rollout, env: Env, act: Act
    ) -> Sequence[Rollout]:
        """Attempts behind a hint; none if it is refused."""
        text = self.read(hint.text)
        if not text or gives_away(task, text):
            return ()
        asked, turn = told(task, self.lead + text), self.inner.turn
        forks = (act.fork("hinted", number, i) for i in range(task.attempts or self.inner.n))
        plays = (play(asked, env, fork, Rollout(source="hinted"), turn) for fork in forks)
        played = await asyncio.gather(*plays)
        return played if all(rollout.length for rollout in played) else ()

    async def _judged(
        self, task: Task, env: Env, tried: Sequence[Sequence[Rollout]]
    ) -> Sequence[Rollout]:
        every = [(i, rollout) for i, some in enumerate(tried, 1) for rollout in some]
        attempts = [rollout for _, rollout in every]
        group = await scored(task, env, attempts) if every else Group(task, ())
        return [_named(r, 0.0, i) for (i, _), r in zip(every, group.rollouts, strict=True)]


def unhinted(group: Group, rollout: Rollout) -> Observation | None:
    """The task's prompt in place of the one with a hint, for who saw one."""
    return group.task.prompt if rollout.source == "hinted" else None


def _named(rollout: Rollout, role: float = 0.0, hint: int = 0, refused: bool = False) -> Rollout:
    told = {"role": role, "hint": float(hint), "refused": float(refused)}
    return replace(rollout, parts={**rollout.parts, **told})


def _texts(messages: Sequence[object]) -> str:
    return "\n\n".join(str(dict(m)["content"]) for m in messages if isinstance(m, dict))
