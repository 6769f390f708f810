"""A small model learns to cross MiniGrid's empty rooms with GiGPO, in minutes on a processor.

python recipes/agents/grid_beginner.py
grupo train recipes/agents/grids.py:RECIPE
"""

from grupo import Adam, CausalLM, Evaluation, Linear, Recipe, SuccessCriterion, Warmup
from grupo.envs import MultiTurn
from grupo.envs.games import MiniGrid, MiniGridTasks
from grupo.methods.gigpo import gigpo

ROOM_NAME = "MiniGrid-Empty-Random-5x5-v0"
RECIPE = Recipe(
    policy=CausalLM(
        ".grupo/models/grid-beginner/model", max_new_tokens=4, tokens_per_microbatch=16384
    ),
    env=MultiTurn(MiniGrid(ROOM_NAME), max_turns=8),
    tasks=MiniGridTasks(20, ROOM_NAME),
    eval_tasks=MiniGridTasks(12, ROOM_NAME, skip=20),
    method=gigpo(group_size=16, gamma=0.9, kl_coef=0.0),
    max_steps=60,
    prompts_per_step=8,
    learning_rate=Warmup(0.05, Linear(5e-4, 5e-5)),
    optimizer=Adam(),
    evaluation=Evaluation(attempts=8, success=SuccessCriterion("env_reward", 0.9)),
)
