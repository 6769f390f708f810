"""A world of many turns: it answers what the policy says, pays for it, and ends it."""

import asyncio
from collections import Counter
from collections.abc import Sequence
from weakref import WeakKeyDictionary

from grupo.core.component import piece
from grupo.core.errors import Refused
from grupo.core.rng import derive
from grupo.core.types import Observation, Rollout, Task, Verdict
from grupo.envs.on_failure import OnFailure, drop
from grupo.envs.scoring import Part, check_time, judge, settled
from grupo.envs.session_cache import Sessions, Stage, World, said_in
from grupo.envs.timeouts import AT_ONCE

OWN = ("world", "turns", "over")  # the parts of a reward that say how it went in the world
LABELS = 1 << 24  # whole numbers that a float32 can hold
NO_ROOM = "the world's first words left no room for an answer"

# of every loop, for as long as it runs: a world by its id, and its sessions
_open: WeakKeyDictionary[asyncio.AbstractEventLoop, dict[int, tuple[object, Sessions]]] = (
    WeakKeyDictionary()
)


@piece
class ManyTurns:
    """Sessions of a world, `turns` long at most; the reward is what it pays and `rewards` say.

    A text that the world says after its first is a message of `role`, where one is given. It may
    take `time_limit` seconds for a turn, and `at_once` sessions are stepped at a time. Where it
    raises or hangs the rollout is over and has failed: `on_failure` decides.

    Parts besides those of `rewards`: `world` is what it paid in all, `turns` how many the policy
    took, `over` whether the world ended it, and whatever the world counts. Marks: `reward`, paid
    at the last action of a turn, the rewards' sum with the last of all; `state` and `action`, a
    number for what the world had said before the turn, and for what the policy said in it.
    """

    world: World
    rewards: tuple[Part, ...] = ()
    turns: int = 16
    role: str = ""
    time_limit: float = 10.0
    at_once: int = AT_ONCE
    on_failure: OnFailure = drop

    def __post_init__(self) -> None:
        names = [part.name for part in self.rewards]
        if len({*names, *OWN}) < len(names) + len(OWN):
            raise Refused(f"rewards: named {names}. Allowed: no name twice, none of {OWN}.")
        for name, value in (("turns", self.turns), ("at_once", self.at_once)):
            if value < 1:
                raise Refused(f"{name}: {value}. Allowed: 1 or more.")
        check_time(self.time_limit)

    async def reply(self, task: Task, rollout: Rollout) -> Observation | None:
        stage = await self._stage(task, rollout)
        if not rollout.turns:  # even a rollout that has failed must begin
            return stage.heard[0].said if stage.heard else task.prompt
        if stage.over or self._is_done(rollout):
            return None
        return self._message(stage.heard[-1].said)

    async def score(self, task: Task, rollouts: Sequence[Rollout]) -> Sequence[Verdict]:
        stages = await asyncio.gather(*(self._stage(task, rollout) for rollout in rollouts))
        judged = [Verdict(0.0)] * len(rollouts)
        if self.rewards:
            judged = await judge(self.rewards, task, rollouts, self.time_limit)
        return settled(task, map(_verdict, rollouts, stages, judged), self.on_failure)

    async def _stage(self, task: Task, rollout: Rollout) -> Stage:
        """How far the rollout has come."""
        return await self._sessions.at(task, said_in(rollout))

    def _is_done(self, rollout: Rollout) -> bool:
        """Has it taken all its turns, or had no room to answer?"""
        silent = any(not action.parts for _, action in rollout.turns[-1:])
        return silent or len(said_in(rollout)) >= self.turns

    @property
    def _sessions(self) -> Sessions:
        worlds = _open.setdefault(asyncio.get_running_loop(), {})
        if id(self) not in worlds:
            worlds[id(self)] = self, Sessions(self.world, self.time_limit, self.at_once)
        return worlds[id(self)][1]

    def _message(self, said: Observation) -> Observation:
        alone = isinstance(said, str) and self.role
        return ({"role": self.role, "content": said},) if alone else said


def _verdict(rollout: Rollout, stage: Stage, judged: Verdict) -> Verdict:
    """What one rollout was paid and judged to be worth."""
    heard = stage.heard[1:]
    counts = Counter[str]()
    for one in heard:
        counts.update(one.counts)
    paid = sum(one.reward for one in heard)
    own = {"world": paid, "turns": float(len(heard)), "over": float(stage.over)}
    parts = {**{name: float(x) for name, x in counts.items()}, **own, **judged.parts}
    silent = "" if rollout.length else NO_ROOM if rollout.turns else "it never had a turn"
    failed = stage.failed or silent or judged.failed
    if failed:
        return Verdict(parts=parts, failed=failed)
    marks = {**_marks(rollout, stage, judged.reward), **judged.marks}
    return Verdict(paid + judged.reward, parts, marks)


def _marks(rollout: Rollout, stage: Stage, outcome: float) -> dict[str, tuple[float, ...]]:
    paid = [one.reward for one in stage.heard[1:]]
    paid[-1] += outcome
    states = [label(one.said) for one in stage.heard]
    actions = [label(text) for text in said_in(rollout)]
    turn = turns_of(rollout)
    return {
        "reward": _at_ends(rollout, turn, paid),
        "state": tuple(states[t] for t in turn),
        "action": tuple(actions[t] for t in turn),
    }


def turns_of(rollout: Rollout) -> list[int]:
    """Which turn each part of the rollout belongs to."""
    turns, turn = [], -1
    for seen, action in rollout.turns:
        turn += bool(action.parts and (seen or turn < 0))
        turns += [turn] * len(action.parts)
    return turns


def label(said: Observation) -> float:
    """A number for what was said: the same for the same, else another but by a rare chance.

    >>> label("left") == label("left") != label("right")
    True
    """
    return float(derive(0, said) % LABELS)


def _at_ends(rollout: Rollout, turn: list[int], paid: list[float]) -> tuple[float, ...]:
    """What every turn was paid, at its last part that is learned from."""
    learned = [action.learned for _, action in rollout.turns for _ in action.parts]
    ends = {t: i for learns in (False, True) for i, t in enumerate(turn) if learned[i] >= learns}
    marks = [0.0] * len(turn)
    for t, i in ends.items():
        marks[i] = paid[t]
    return tuple(marks)
