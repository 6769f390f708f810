"""Sessions of a world: where one stands is a fold over what the policy said in it.

A fold of the same words is made once. A session is copied where a rollout goes on from it, so that
rollouts may branch; one that cannot be copied, or is no longer kept, is played again.
"""

import asyncio
from collections import deque
from collections.abc import Mapping
from copy import deepcopy
from dataclasses import dataclass, field
from functools import partial
from threading import Lock
from types import MappingProxyType
from typing import Any, NamedTuple, Protocol

from grupo.core.pending_env_steps import away
from grupo.core.types import Observation, Rollout, Task
from grupo.envs.reward_parsing import number
from grupo.envs.timeouts import Failure, ask_one

KEPT = 2048  # sessions that are kept for rollouts to go on from
NOTHING: Mapping[str, float] = MappingProxyType({})


class Heard(NamedTuple):
    """What a world answers: its words, what it pays, whether it is over, what is to be counted.

    Where several play, it says to whom it speaks, whose turn it then is, and what it pays to each.
    """

    said: Observation
    reward: float = 0.0
    over: bool = False
    counts: Mapping[str, float] = NOTHING
    to: int = 0
    pays: tuple[float, ...] = ()


class Session(Protocol):
    """One stay in a world, of which the policy's words alone decide the course."""

    def reset(self, task: Task) -> Observation | Heard:
        """What the world says first."""
        ...

    def step(self, text: str) -> tuple[Observation, float, bool] | Heard:
        """What it says to the policy's words, what it pays for them, and whether it is over."""
        ...


class World(Protocol):
    """Opens sessions."""

    def __call__(self) -> Session: ...


@dataclass
class Stage:
    """How far a session has come: all that was heard in it, and why it failed, if it has."""

    heard: tuple[Heard, ...] = ()
    failed: str = ""
    session: Session | None = None  # as it stands here; None: nobody has it any more
    lock: Lock = field(default_factory=Lock)

    @property
    def over(self) -> bool:
        """Has the world ended it, or failed?"""
        return bool(self.failed) or any(one.over for one in self.heard[-1:])

    def lend(self) -> Session | None:
        """A session that stands here, to go on with: a copy, or the only one."""
        with self.lock:
            try:
                return deepcopy(self.session)
            except Exception:  # whatever forbids to copy it
                mine, self.session = self.session, None
                return mine


class Sessions:
    """Where the sessions of one world stand, by task and by what was said."""

    def __init__(self, world: World, time_limit: float, at_once: int) -> None:
        self.world, self.time_limit = world, time_limit
        self.slots = asyncio.Semaphore(at_once)
        self.stages: dict[tuple[str, str, tuple[str, ...]], asyncio.Future[Stage]] = {}
        self.kept: deque[Stage] = deque()

    async def at(self, task: Task, said: tuple[str, ...]) -> Stage:
        """Where a session stands after these words of the policy's, one text a turn."""
        place = (task.key, repr(task.prompt), said)
        if place not in self.stages:
            self.stages[place] = made = asyncio.get_running_loop().create_future()
            try:
                made.set_result(await self._made(task, said))
            finally:
                if not made.done():  # cancelled: whoever comes next tries again
                    del self.stages[place]
                    made.cancel()
        return await self.stages[place]

    async def _made(self, task: Task, said: tuple[str, ...]) -> Stage:
        before = await self.at(task, said[:-1]) if said else Stage()
        if before.failed:
            return before
        if before.over:
            return Stage(before.heard, "the policy went on after the world was over")
        with away():
            async with self.slots:
                go_on = partial(_go_on, self.world, task, said, before)
                answer = await ask_one(go_on, self.time_limit)
        if isinstance(answer, Failure):
            return Stage(before.heard, f"the world {answer.why} at turn {len(said)}")
        session, heard = answer
        return self._keep(Stage((*before.heard, heard), session=session))

    def _keep(self, stage: Stage) -> Stage:
        self.kept.append(stage)
        while len(self.kept) > KEPT:
            self.kept.popleft().session = None
        return stage


def said_in(rollout: Rollout) -> tuple[str, ...]:
    """The policy's words turn by turn; a turn begins where the world speaks.

    A turn without parts is none: there was no room left to say anything.

    >>> from grupo.core.types import Action
    >>> a, b = (Action((1,), (0.0,), text=text) for text in "ab")
    >>> said_in(Rollout().then("Go!", a).then("", b).then("On!", a))
    ('ab', 'a')
    """
    texts: list[str] = []
    for seen, action in rollout.turns:
        if action.parts and (seen or not texts):
            texts.append(action.text)
        elif action.parts:
            texts[-1] += action.text
    return tuple(texts)


def _go_on(world: World, task: Task, said: tuple[str, ...], before: Stage) -> tuple[Session, Heard]:
    """The session one turn later, and what the world said to it."""
    if not said:
        session = world()
        return session, begun(session, task)
    session = before.lend() or _played_again(world, task, said[:-1], before.heard)
    return session, stepped(session, said[-1])


def _played_again(
    world: World, task: Task, said: tuple[str, ...], heard: tuple[Heard, ...]
) -> Session:
    session = world()
    again = [begun(session, task), *(stepped(session, text) for text in said)]
    if again != list(heard):
        raise ValueError("the same words were answered otherwise when played again")
    return session


def begun(session: Session, task: Task) -> Heard:
    """What the world says first."""
    first = session.reset(task)
    return _sound(first if isinstance(first, Heard) else Heard(first))


def stepped(session: Session, text: str) -> Heard:
    """What it says to these words."""
    answer: Any = session.step(text)
    return _sound(Heard(*answer))


def _sound(heard: Heard) -> Heard:
    """What a world answered, with numbers that are numbers."""
    if not heard.said and not heard.over:
        raise ValueError("it said nothing, and is not over")
    pays = tuple(map(number, heard.pays))
    return heard._replace(reward=number(heard.reward), over=bool(heard.over), pays=pays)
