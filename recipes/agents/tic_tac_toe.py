"""A small model learns TextArena's tic-tac-toe by playing itself, in minutes: docs/agents.md.

python recipes/agents/player.py
grupo train recipes/agents/tic_tac_toe.py:RECIPE
"""

import re
from collections.abc import Sequence

from grupo import Adam, CausalLM, Evaluation, Linear, Recipe, Solved, Warmup
from grupo.envs import Arena
from grupo.envs.games import Games, TextArena
from grupo.envs.games.text_arena import Message
from grupo.envs.random_opponent import Offered
from grupo.methods.mars_selfplay import mars_selfplay

GAME = "TicTacToe-v0"
MARKS = "OX"  # of the first player, of the second


def squares(player: int, messages: Sequence[Message]) -> str:
    """The newest board in a line: one's own marks X, the other's O, free squares their numbers."""
    boards = [text for _, text, _ in messages if text.startswith("Current Board")]
    cells = re.findall(r"(?<= )[OX\d](?= )", boards[-1].partition("Available")[0])
    return "".join(cell if cell.isdigit() else _mark(cell, player) for cell in cells) + "\n"


def _mark(cell: str, player: int) -> str:
    return "X" if cell == MARKS[player] else "O"


RECIPE = Recipe(
    policy=CausalLM(".grupo/models/player/model", limit=2, budget=32768),
    env=Arena(TextArena(GAME, squares, fine=0.25), turns=10, house=Offered(r"\d")),
    tasks=Games(GAME, 1000),
    held_out=Games(GAME, 100, seated=True),
    method=mars_selfplay(games=16, kl=0.0),
    steps=100,
    prompts=4,
    lr=Warmup(0.05, Linear(3e-3, 3e-4)),
    optimizer=Adam(),
    evaluation=Evaluation(attempts=4, solved=Solved("world", 0.1)),
    save_every=50,
)
