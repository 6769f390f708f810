"""Games under way: those who play meet at a table, and each waits there for its turn."""

import asyncio
from dataclasses import dataclass, field
from random import Random
from typing import Protocol

from grupo.core.component import piece
from grupo.core.rng import generator
from grupo.core.types import Observation, Task
from grupo.envs.session_cache import Heard, Session, Sessions, Stage, World, begun, stepped

SEAT, GAME, PLAYERS = "seat", "game", "players"  # parts of a rollout that yet has to begin


@dataclass
class Table:
    """One game: where it stands is a fold over the words of all who play."""

    task: Task
    sessions: Sessions
    players: int
    said: tuple[str, ...] = ()
    spoken: tuple[int, ...] = ()  # who said it
    left: bool = False  # somebody says no more: nobody is waited for
    news: asyncio.Event = field(default_factory=asyncio.Event)

    async def turn(self, seat: int, said: tuple[str, ...], *, leaves: bool) -> Stage:
        """How the game stands for a player who said this, when it is its turn or all is over.

        That is the stage of a world of its own, to which the others belong.
        """
        self._hear(seat, said, leaves)
        while True:
            news, stage = self.news, await self.sessions.at(self.task, self.said)
            turn = stage.heard[-1].to if stage.heard else seat
            if not 0 <= turn < self.players:
                why = f"the world gave the turn to player {turn} of {self.players}"
                return Stage(seen_by(seat, stage).heard, why)
            if self.left or stage.over or turn == seat:
                return seen_by(seat, stage)
            await news.wait()

    def _hear(self, seat: int, said: tuple[str, ...], leaves: bool) -> None:
        if len(said) > self.spoken.count(seat):
            self.said, self.spoken = (*self.said, said[-1]), (*self.spoken, seat)
        elif not leaves:
            return
        self.left |= leaves
        news, self.news = self.news, asyncio.Event()
        news.set()


def seen_by(seat: int, stage: Stage) -> Stage:
    """A game as one player has it: what it was told, and what it was paid until its next turn.

    >>> stage = Stage((Heard("go"), Heard("on", to=1), Heard("", over=True, pays=(-1.0, 1.0))))
    >>> [(one.said, one.reward, one.over) for one in seen_by(0, stage).heard]
    [('go', 0.0, False), ('go', -1.0, True)]
    """
    own, speaker = [Heard("")], -1
    for one in stage.heard:
        if speaker == seat:
            own.append(Heard(own[-1].said, counts=one.counts))
        said = one.said if one.to == seat and one.said else own[-1].said
        paid = own[-1].reward + (one.pays[seat] if one.pays else 0.0)
        own[-1] = own[-1]._replace(said=said, reward=paid, over=one.over)
        speaker = one.to
    return Stage(tuple(own), stage.failed)


class House(Protocol):
    """A player that is not trained: what it says to what it hears."""

    def __call__(self, said: Observation, chance: Random, /) -> str: ...


@piece
class Against:
    """A world for one: the game, with `house` in every seat but that in the task's column `seat`.

    What the house draws, it draws alike in all rollouts of a task that say the same.
    """

    game: World
    house: House

    def __call__(self) -> "_Guest":
        return _Guest(self.game(), self.house)


class _Guest:
    """A session of one player."""

    def __init__(self, game: Session, house: House) -> None:
        self.game, self.house = game, house

    def reset(self, task: Task) -> Heard:
        self.seat = int(task.columns.get(SEAT, 0))
        self.chance = generator(0, "house", task.key)
        return self._answered(begun(self.game, task))

    def step(self, text: str) -> Heard:
        return self._answered(stepped(self.game, text))

    def _answered(self, heard: Heard) -> Heard:
        """What is heard once the others have had their turns."""
        paid, counts = self._paid(heard), heard.counts
        while heard.to != self.seat and not heard.over:
            heard = stepped(self.game, self.house(heard.said, self.chance))
            paid += self._paid(heard)
        return heard._replace(reward=paid, counts=counts)

    def _paid(self, heard: Heard) -> float:
        return heard.pays[self.seat] if heard.pays else 0.0
