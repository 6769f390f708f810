"""Two-player games of TextArena: the player to move observes the messages since its last move."""

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
from grupo.envs.game_env import StepResult

NUM_PLAYERS = 2
RAW_SUFFIX = "-raw"  # ends the registry names of games without wrappers
Message = tuple[int, str, Any]  # the sender, -1 for the game; the text; its kind
MessageFormatter = Callable[[int, Sequence[Message]], str]
_global_rng_lock = Lock()  # TextArena draws from Python's global generator


def format_since_last_move(player: int, messages: Sequence[Message]) -> str:
    """The messages of the game and of the other player, one per line.

    >>> messages = [(-1, "Your card is K.", None), (0, "[bet]", None), (1, "[call]", None)]
    >>> format_since_last_move(0, messages)
    'Your card is K.\\nPlayer 1: [call]\\n'
    """
    lines = []
    for sender, text, _ in messages:
        if sender != player:
            line = text if sender < 0 else f"Player {sender}: {text}"
            lines.append(f"{line.strip()}\n")
    return "".join(lines)


@component
class TextArena:
    """Environment factory for a two-player game of TextArena; pass it to `MultiplayerEnv`.

    The winner's reward is 1, the loser's -1. A move against the rules costs the penalty, and two
    in a row lose the game; the reward term `invalid_moves` counts them. A move without brackets is
    put into brackets.

    Args:
        game: The game's name in TextArena's registry, such as "KuhnPoker-v0".
        format_messages: Makes an observation of the player's index and its new messages.
        invalid_move_penalty: Subtracted from the reward of a move against the rules.
    """

    game: str
    format_messages: MessageFormatter = format_since_last_move
    invalid_move_penalty: float = 0.0

    def check(self) -> None:
        """Raises `ConfigError` if TextArena is not installed or has no such game."""
        if find_spec("textarena") is None:
            raise ConfigError("env: TextArena is not installed. Install the extra: grupo[arena].")
        raw_names = [name for name in _registered_games() if name.endswith(RAW_SUFFIX)]
        games = [name.removesuffix(RAW_SUFFIX) for name in raw_names]
        if self.game not in games:
            raise ConfigError(
                f"env: TextArena has no game {self.game!r}. {suggest(self.game, games)}"
            )

    def __call__(self) -> "TextArenaGame":
        return TextArenaGame(self.game, self.format_messages, self.invalid_move_penalty)


def _registered_games() -> Sequence[str]:
    """Names of all games; the import takes seconds, at times longer than a turn may."""
    return list(import_module("textarena.envs.registration").ENV_REGISTRY)


class TextArenaGame:
    """A session of one game."""

    def __init__(
        self, game: str, format_messages: MessageFormatter, invalid_move_penalty: float
    ) -> None:
        self.game = game
        self.format_messages = format_messages
        self.invalid_move_penalty = invalid_move_penalty

    def reset(self, task: Task) -> StepResult:
        """The first player's observation; the game's random numbers derive from the task's key."""
        seed = derive_key(0, "text arena", task.key) % (1 << 31)
        self.rng_state = random.Random(seed).getstate()
        with self._own_global_rng():
            self.env: Any = import_module("textarena").make(f"{self.game}{RAW_SUFFIX}")
            self.env.reset(num_players=NUM_PLAYERS, seed=seed)
            return self._observe()

    def step(self, text: str) -> StepResult:
        """The next player's observation, and the rewards of both."""
        with self._own_global_rng():
            mover = self.env.state.current_player_id
            done, _ = self.env.step(text if "[" in text else f"[{text.strip()}]")
            outcome, game_info = self.env.close() if done else ({}, {})
            if done:
                invalid = game_info[mover]["invalid_move"]
                result = StepResult("", done=True)
            else:
                invalid = self.env.state.error_count > 0
                result = self._observe()
        rewards = [float(outcome.get(player, 0)) for player in range(NUM_PLAYERS)]
        rewards[mover] -= self.invalid_move_penalty * invalid
        counts = {"invalid_moves": float(invalid)}
        return result._replace(counts=counts, player_rewards=tuple(rewards))

    def _observe(self) -> StepResult:
        player, messages = self.env.get_observation()
        return StepResult(self.format_messages(player, messages), next_player=player)

    @contextmanager
    def _own_global_rng(self) -> Iterator[None]:
        """Python's global generator in this game's state; restored afterwards."""
        with _global_rng_lock:
            outer_state = random.getstate()
            random.setstate(self.rng_state)
            try:
                yield
            finally:
                self.rng_state = random.getstate()
                random.setstate(outer_state)


@component
class TextArenaTasks:
    """Games of the policy with itself, or against an opponent in alternating seats.

    Every task has a key of its own, and with it random numbers of its own.

    Args:
        game: The game's name in TextArena's registry.
        count: Number of games.
        versus_opponent: The policy plays against the environment's opponent: as the first player,
            the second, the first, and so on.
    """

    game: str
    count: int
    versus_opponent: bool = False

    def load(self) -> Sequence[Task]:
        """The tasks; the prompt is the game's name, since the game provides the observations."""
        # the key seeds a game, so its wording is fixed
        kind = "against the house" if self.versus_opponent else "by oneself"
        tasks = []
        for i in range(self.count):
            columns = {"seat": i % NUM_PLAYERS} if self.versus_opponent else {}
            key = f"{self.game} {kind} {i}"
            tasks.append(Task(key, self.game, source=self.game, columns=columns))
        return tasks
