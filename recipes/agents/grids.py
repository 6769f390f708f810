"""A small model learns to cross MiniGrid's empty rooms with GiGPO, in minutes on a processor.

python recipes/agents/grid_beginner.py
grupo train recipes/agents/grids.py:RECIPE
"""

from grupo import Adam, CausalLM, Evaluation, Linear, Recipe, Solved, Warmup
from grupo.envs import ManyTurns
from grupo.envs.games import Grids, MiniGrid
from grupo.methods.gigpo import gigpo

ROOM = "MiniGrid-Empty-Random-5x5-v0"
RECIPE = Recipe(
    policy=CausalLM(".grupo/models/grid-beginner/model", limit=4, budget=16384),
    env=ManyTurns(MiniGrid(ROOM), turns=8),
    tasks=Grids(20, ROOM),
    held_out=Grids(12, ROOM, skip=20),
    method=gigpo(group=16, gamma=0.9, kl=0.0),
    steps=60,
    prompts=8,
    lr=Warmup(0.05, Linear(5e-4, 5e-5)),
    optimizer=Adam(),
    evaluation=Evaluation(attempts=8, solved=Solved("world", 0.9)),
)
