"""A small model learns on frozen lakes with GiGPO, in minutes on a processor: docs/agents.md.

python recipes/agents/beginner.py
grupo train recipes/agents/frozen_lake.py:RECIPE
"""

from grupo import Adam, CausalLM, Evaluation, Linear, Recipe, Solved, Warmup
from grupo.envs import ManyTurns
from grupo.envs.games import FrozenLake, Lakes
from grupo.methods.gigpo import gigpo

RECIPE = Recipe(
    policy=CausalLM(".grupo/models/lake-beginner/model", limit=4, budget=16384),
    env=ManyTurns(FrozenLake(), turns=10),
    tasks=Lakes(1000, seed=1),
    held_out=Lakes(100, seed=3),
    method=gigpo(group=16, gamma=0.9, kl=0.0),
    steps=60,
    prompts=8,
    lr=Warmup(0.05, Linear(5e-4, 5e-5)),
    optimizer=Adam(),
    evaluation=Evaluation(attempts=4, solved=Solved("world")),
)
