"""Games of TextArena: the player to move observes the messages since its last move."""

import random
from collections.abc import Callable, Sequence
from importlib import import_module
from importlib.util import find_spec
from typing import Any

from grupo.core.component import component
from grupo.core.ranges import NonNegativeFloat, PositiveInt
from grupo.core.types import Task
from grupo.envs.game_env import StepResult
from grupo.envs.games.thread_random import ThreadRandom
from grupo.util.errors import ConfigError, suggest
from grupo.util.loader_errors import loader_errors
from grupo.util.rng import derive_key

RAW_SUFFIX = "-raw"  # ends the registry names of games without wrappers
Message = tuple[int, str, Any]  # the sender, -1 for the game; the text; its kind
MessageFormatter = Callable[[int, Sequence[Message]], str]
_thread_random = ThreadRandom()  # TextArena draws from Python's global generator
NOTHING_NEW = "It is your turn.\n"  # where no message has reached the player since its last move


def format_since_last_move(player: int, messages: Sequence[Message]) -> str:
    """The messages of the game and of the other players, one per line.

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
    """Environment factory for a game of TextArena; pass it to `MultiplayerEnv`.

    The rewards are TextArena's, for each player: 1 for the winner and -1 for the losers, or ranks
    between them. A player that is eliminated has no further turn, and its reward at the end. A move
    against the rules costs the penalty, and two in a row lose the game or eliminate the player; the
    reward term `invalid_moves` counts them. A move without brackets is put into brackets.

    Args:
        game: The game's name in TextArena's registry, such as "KuhnPoker-v0".
        format_messages: Makes an observation of the player's index and its new messages.
        invalid_move_penalty: Subtracted from the reward of a move against the rules.
        players: Number of players; the game decides which numbers it allows.
    """

    game: str
    format_messages: MessageFormatter = format_since_last_move
    invalid_move_penalty: NonNegativeFloat = 0.0
    players: PositiveInt = 2

    def check(self) -> None:
        """Raises `ConfigError` if TextArena or the game is missing, or forbids `players`."""
        if find_spec("textarena") is None:
            raise ConfigError("env: TextArena is not installed. Install the extra: grupo[arena].")
        raw_names = [name for name in _registered_games() if name.endswith(RAW_SUFFIX)]
        games = [name.removesuffix(RAW_SUFFIX) for name in raw_names]
        if self.game not in games:
            raise ConfigError(
                f"env: TextArena has no game {self.game!r}. {suggest(self.game, games)}"
            )
        with loader_errors(f"env: {self.game} with {self.players} players"):
            self().reset(Task(self.game, ""))

    def validate_tasks(self, tasks: Sequence[Task]) -> None:
        """Raise `ConfigError` for a task with a seat that the game does not have."""
        for task in tasks:
            if not 0 <= int(task.columns.get("seat", 0)) < self.players:
                raise ConfigError(
                    f"tasks: {task.key!r} has the seat {task.columns['seat']}."
                    f" Allowed: 0 to {self.players - 1}."
                )

    def __call__(self) -> "TextArenaGame":
        return TextArenaGame(self)


def _registered_games() -> Sequence[str]:
    """Names of all games; the import takes seconds, at times longer than a turn may."""
    return list(import_module("textarena.envs.registration").ENV_REGISTRY)


def _make_game(name: str) -> Any:
    """The game, of whose modules none draws from the global generator."""
    text_arena = import_module("textarena")
    entry_point = text_arena.envs.registration.ENV_REGISTRY[name].entry_point
    import_module(entry_point.partition(":")[0])
    _thread_random.replace_in(text_arena.__name__)
    return text_arena.make(name)


class TextArenaGame:
    """A session of one game.

    Args:
        config: The description of the game.
    """

    def __init__(self, config: TextArena) -> None:
        self.config = config

    def reset(self, task: Task) -> StepResult:
        """The first player's observation; the game's random numbers derive from the task's key."""
        seed = derive_key(0, "text arena", task.key) % (1 << 31)
        self.rng = random.Random(seed)
        with _thread_random.drawing_from(self.rng):
            self.env: Any = _make_game(f"{self.config.game}{RAW_SUFFIX}")
            self.env.reset(num_players=self.config.players, seed=seed)
            return self._observe()

    def step(self, text: str) -> StepResult:
        """The next player's observation, and the rewards of all."""
        with _thread_random.drawing_from(self.rng):
            mover = self.env.state.current_player_id
            lost_before = self._has_lost_by_rules(mover)
            done, _ = self.env.step(text if "[" in text else f"[{text.strip()}]")
            lost = self._has_lost_by_rules(mover) and not lost_before
            invalid = lost or (not done and self.env.state.error_count > 0)
            outcome = (self.env.close()[0] or {}) if done else {}
            result = StepResult("", done=True) if done else self._observe()
        rewards = [float(outcome.get(player, 0)) for player in range(self.config.players)]
        rewards[mover] -= self.config.invalid_move_penalty * invalid
        counts = {"invalid_moves": float(invalid)}
        return result._replace(counts=counts, player_rewards=tuple(rewards))

    def _has_lost_by_rules(self, player: int) -> bool:
        return bool(self.env.state.game_info[player]["invalid_move"])

    def _observe(self) -> StepResult:
        player, messages = self.env.get_observation()
        text = self.config.format_messages(player, messages) or NOTHING_NEW
        return StepResult(text, next_player=player)


@component
class TextArenaTasks:
    """Games of the policy with itself, or against an opponent in alternating seats.

    Every task has a key of its own, and with it random numbers of its own.

    Args:
        game: The game's name in TextArena's registry.
        count: Number of games.
        versus_opponent: The policy plays against the environment's opponent, which has all other
            seats: as the first player, the second and so on, and again as the first.
        players: Number of players.
    """

    game: str
    count: PositiveInt
    versus_opponent: bool = False
    players: PositiveInt = 2

    def load(self) -> Sequence[Task]:
        """The tasks; the prompt is the game's name, since the game provides the observations."""
        # the key seeds a game, so its wording is fixed
        kind = "against the house" if self.versus_opponent else "by oneself"
        tasks = []
        for i in range(self.count):
            columns = {"seat": i % self.players} if self.versus_opponent else {}
            key = f"{self.game} {kind} {i}"
            tasks.append(Task(key, self.game, source=self.game, columns=columns))
        return tasks
