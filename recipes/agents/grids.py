"""GiGPO trains a toy model in an empty room of MiniGrid, in minutes on a CPU: docs/agents.md.

python recipes/agents/grid_base_model.py
grupo train recipes/agents/grids.py:RECIPE
"""

from grupo import Adam, CausalLM, Evaluation, Linear, Recipe, SuccessCriterion, Warmup
from grupo.envs import MultiTurn
from grupo.envs.games import MiniGrid, MiniGridTasks
from grupo.methods.gigpo import gigpo
from grupo.util.user_paths import models_dir

ENV_ID = "MiniGrid-Empty-Random-5x5-v0"
RECIPE = Recipe(
    policy=CausalLM(
        str(models_dir() / "grid-base-model" / "model"),
        max_new_tokens=4,
        tokens_per_microbatch=16384,
    ),
    env=MultiTurn(MiniGrid(ENV_ID), max_turns=8),
    tasks=MiniGridTasks(20, ENV_ID),
    eval_tasks=MiniGridTasks(12, ENV_ID, skip=20),
    method=gigpo(group_size=16, gamma=0.9, kl_coef=0.0),
    max_steps=60,
    prompts_per_step=8,
    learning_rate=Warmup(0.05, Linear(5e-4, 5e-5)),
    optimizer=Adam(),
    evaluation=Evaluation(attempts=8, success=SuccessCriterion("env_reward", 0.9)),
)
