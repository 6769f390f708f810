"""Games of TextArena for two: who is to move hears what was said since, and says a move."""

import random
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from importlib import import_module
from importlib.util import find_spec
from threading import Lock
from typing import Any

from grupo.core.component import component
from grupo.core.errors import ConfigError, suggest
from grupo.core.rng import derive_key
from grupo.core.types import Task
from grupo.envs.session_cache import StepResult

NUM_PLAYERS, RAW_SUFFIX = 2, "-raw"  # the ending of names of games without wrappers
Message = tuple[int, str, Any]  # who says it, -1 for the game; the text; its kind
MessageFormatter = Callable[[int, Sequence[Message]], str]
_global_rng_lock = Lock()  # TextArena draws from Python's one generator


def format_since_last_move(player: int, messages: Sequence[Message]) -> str:
    """What was said since the player's last move, but for its own words.

    >>> format_since_last_move(0, [(-1, "Your card is K.", None), (0, "[bet]", None), (1, "[call]", None)])
    'Your card is K.\\nPlayer 1: [call]\\n'
    """
    others = ((who, text) for who, text, _ in messages if who != player)
    told = (text if who < 0 else f"Player {who}: {text}" for who, text in others)
    return "".join(f"{text.strip()}\n" for text in told)


@component
class TextArena:
    """Games by their name in TextArena's registry, without wrappers; for `MultiplayerEnv`.

    `show` makes a text of the messages to a player. A move without brackets is given them. Who wins
    is paid 1, who loses -1. A move against the rules costs `invalid_move_penalty`, and two in a row the game; the
    part `invalid` counts them.
    """

    game: str
    format_messages: MessageFormatter = format_since_last_move
    invalid_move_penalty: float = 0.0

    def check(self) -> None:
        """Refuse to play without TextArena, or a game that it has not got."""
        if find_spec("textarena") is None:
            raise ConfigError("env: TextArena is not installed. Install the extra: grupo[arena].")
        games = [
            name.removesuffix(RAW_SUFFIX)
            for name in _registered_games()
            if name.endswith(RAW_SUFFIX)
        ]
        if self.game not in games:
            raise ConfigError(
                f"env: TextArena has no game {self.game!r}. {suggest(self.game, games)}"
            )

    def __call__(self) -> "TextArenaGame":
        return TextArenaGame(self.game, self.format_messages, self.invalid_move_penalty)


def _registered_games() -> Sequence[str]:
    """The names of all games. It takes seconds to import: longer than a turn may, at times."""
    return list(import_module("textarena.envs.registration").ENV_REGISTRY)


class TextArenaGame:
    """A session of one game."""

    def __init__(
        self, game: str, format_messages: MessageFormatter, invalid_move_penalty: float
    ) -> None:
        self.game, self.format_messages, self.invalid_move_penalty = (
            game,
            format_messages,
            invalid_move_penalty,
        )

    def reset(self, task: Task) -> StepResult:
        """What the first player is told; what is drawn depends on the task's key."""
        seed = derive_key(0, "text arena", task.key) % (1 << 31)
        self.rng_state = random.Random(seed).getstate()
        with self._own_global_rng():
            self.env: Any = import_module("textarena").writer_class(f"{self.game}{RAW_SUFFIX}")
            self.env.reset(num_players=NUM_PLAYERS, seed=seed)
            return self._observe()

    def step(self, text: str) -> StepResult:
        """What the next player is told, and what each is paid."""
        with self._own_global_rng():
            mover = self.env.state.current_player_id
            over, _ = self.env.step(text if "[" in text else f"[{text.strip()}]")
            outcome, ends = self.env.close() if over else ({}, {})
            broke = self.env.state.error_count > 0 if not over else ends[mover]["invalid_move"]
            heard = StepResult("", done=True) if over else self._observe()
        pays = [float(outcome.get(player, 0)) for player in range(NUM_PLAYERS)]
        pays[mover] -= self.invalid_move_penalty * broke
        return heard._replace(counts={"invalid": float(broke)}, pays=tuple(pays))

    def _observe(self) -> StepResult:
        player, messages = self.env.get_observation()
        return StepResult(self.format_messages(player, messages), next_player=player)

    @contextmanager
    def _own_global_rng(self) -> Iterator[None]:
        """Python's generator as this game left it; then as it was."""
        with _global_rng_lock:
            others = random.getstate()
            random.setstate(self.rng_state)
            try:
                yield
            finally:
                self.rng_state = random.getstate()
                random.setstate(others)


@component
class TextArenaTasks:
    """`count` games by the policy with itself, or, `versus_opponent`, with the house: first, second, first …

    Their keys differ, and so does what is drawn in them.
    """

    game: str
    count: int
    versus_opponent: bool = False

    def load(self) -> Sequence[Task]:
        """Their tasks; a game says itself how it begins."""
        kind = "against the house" if self.versus_opponent else "by oneself"
        seats = [
            {"seat": i % NUM_PLAYERS} if self.versus_opponent else {} for i in range(self.count)
        ]
        return [
            Task(f"{self.game} {kind} {i}", self.game, source=self.game, columns=seat)
            for i, seat in enumerate(seats)
        ]
