"""Games of TextArena for two: who is to move hears what was said since, and says a move."""

import random
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from importlib import import_module
from importlib.util import find_spec
from threading import Lock
from typing import Any

from grupo.core.component import piece
from grupo.core.errors import Refused, nearest
from grupo.core.rng import derive
from grupo.core.types import Task
from grupo.envs.session_cache import Heard

PLAYERS, RAW = 2, "-raw"  # the ending of names of games without wrappers
Message = tuple[int, str, Any]  # who says it, -1 for the game; the text; its kind
Show = Callable[[int, Sequence[Message]], str]
_drawing = Lock()  # TextArena draws from Python's one generator


def everything(player: int, messages: Sequence[Message]) -> str:
    """What was said since the player's last move, but for its own words.

    >>> everything(0, [(-1, "Your card is K.", None), (0, "[bet]", None), (1, "[call]", None)])
    'Your card is K.\\nPlayer 1: [call]\\n'
    """
    others = ((who, text) for who, text, _ in messages if who != player)
    told = (text if who < 0 else f"Player {who}: {text}" for who, text in others)
    return "".join(f"{text.strip()}\n" for text in told)


@piece
class TextArena:
    """Games by their name in TextArena's registry, without wrappers; for `Arena`.

    `show` makes a text of the messages to a player. A move without brackets is given them. Who wins
    is paid 1, who loses -1. A move against the rules costs `fine`, and two in a row the game; the
    part `invalid` counts them.
    """

    game: str
    show: Show = everything
    fine: float = 0.0

    def check(self) -> None:
        """Refuse to play without TextArena, or a game that it has not got."""
        if find_spec("textarena") is None:
            raise Refused("env: TextArena is not installed. Install the extra: grupo[arena].")
        games = [name.removesuffix(RAW) for name in _registry() if name.endswith(RAW)]
        if self.game not in games:
            raise Refused(f"env: TextArena has no game {self.game!r}. {nearest(self.game, games)}")

    def __call__(self) -> "Match":
        return Match(self.game, self.show, self.fine)


def _registry() -> Sequence[str]:
    """The names of all games. It takes seconds to import: longer than a turn may, at times."""
    return list(import_module("textarena.envs.registration").ENV_REGISTRY)


class Match:
    """A session of one game."""

    def __init__(self, game: str, show: Show, fine: float) -> None:
        self.game, self.show, self.fine = game, show, fine

    def reset(self, task: Task) -> Heard:
        """What the first player is told; what is drawn depends on the task's key."""
        seed = derive(0, "text arena", task.key) % (1 << 31)
        self.drawn = random.Random(seed).getstate()
        with self._drawing():
            self.env: Any = import_module("textarena").make(f"{self.game}{RAW}")
            self.env.reset(num_players=PLAYERS, seed=seed)
            return self._told()

    def step(self, text: str) -> Heard:
        """What the next player is told, and what each is paid."""
        with self._drawing():
            mover = self.env.state.current_player_id
            over, _ = self.env.step(text if "[" in text else f"[{text.strip()}]")
            outcome, ends = self.env.close() if over else ({}, {})
            broke = self.env.state.error_count > 0 if not over else ends[mover]["invalid_move"]
            heard = Heard("", over=True) if over else self._told()
        pays = [float(outcome.get(player, 0)) for player in range(PLAYERS)]
        pays[mover] -= self.fine * broke
        return heard._replace(counts={"invalid": float(broke)}, pays=tuple(pays))

    def _told(self) -> Heard:
        player, messages = self.env.get_observation()
        return Heard(self.show(player, messages), to=player)

    @contextmanager
    def _drawing(self) -> Iterator[None]:
        """Python's generator as this game left it; then as it was."""
        with _drawing:
            others = random.getstate()
            random.setstate(self.drawn)
            try:
                yield
            finally:
                self.drawn = random.getstate()
                random.setstate(others)


@piece
class Games:
    """`count` games by the policy with itself, or, `seated`, with the house: first, second, first …

    Their keys differ, and so does what is drawn in them.
    """

    game: str
    count: int
    seated: bool = False

    def load(self) -> Sequence[Task]:
        """Their tasks; a game says itself how it begins."""
        kind = "against the house" if self.seated else "by oneself"
        seats = [{"seat": i % PLAYERS} if self.seated else {} for i in range(self.count)]
        return [
            Task(f"{self.game} {kind} {i}", self.game, source=self.game, columns=seat)
            for i, seat in enumerate(seats)
        ]
