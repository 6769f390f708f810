"""Self-play trains a toy model on TextArena's tic-tac-toe, in minutes: docs/agents.md.

python recipes/agents/tic_tac_toe_base_model.py
grupo train recipes/agents/tic_tac_toe.py:RECIPE
"""

import re
from collections.abc import Sequence

from grupo import Adam, CausalLM, Evaluation, Linear, Recipe, SuccessCriterion, Warmup
from grupo.algo.minibatches import SingleUpdate
from grupo.envs import MultiplayerEnv
from grupo.envs.games import TextArena, TextArenaTasks
from grupo.envs.games.text_arena import Message
from grupo.envs.random_opponent import RandomOpponent
from grupo.methods.mars_selfplay import mars_selfplay
from grupo.util.user_paths import models_dir

GAME = "TicTacToe-v0"
PLAYER_SYMBOLS = "OX"  # of the first player, of the second


def board_line(player: int, messages: Sequence[Message]) -> str:
    """The latest board on one line: X own marks, O the other's, numbers free squares."""
    boards = [text for _, text, _ in messages if text.startswith("Current Board")]
    cells = re.findall(r"(?<= )[OX\d](?= )", boards[-1].partition("Available")[0])
    symbols = (cell if cell.isdigit() else _relative_symbol(cell, player) for cell in cells)
    return "".join(symbols) + "\n"


def _relative_symbol(cell: str, player: int) -> str:
    return "X" if cell == PLAYER_SYMBOLS[player] else "O"


RECIPE = Recipe(
    policy=CausalLM(
        str(models_dir() / "tic-tac-toe-base-model" / "model"),
        max_new_tokens=2,
        tokens_per_microbatch=32768,
    ),
    env=MultiplayerEnv(
        TextArena(GAME, board_line, invalid_move_penalty=0.25),
        max_turns=10,
        opponent=RandomOpponent(r"\d"),
    ),
    tasks=TextArenaTasks(GAME, 1000),
    eval_tasks=TextArenaTasks(GAME, 100, versus_opponent=True),
    method=mars_selfplay(games=16, kl_coef=0.0).replace(updates=SingleUpdate()),  # of 4 groups
    max_steps=100,
    prompts_per_step=4,
    learning_rate=Warmup(0.05, Linear(3e-3, 3e-4)),
    optimizer=Adam(),
    evaluation=Evaluation(attempts=4, success=SuccessCriterion("env_reward", 0.1)),
    save_every=50,
)
