"""GiGPO trains a toy model on FrozenLake, in minutes on a CPU: docs/agents.md.

python recipes/agents/lake_base_model.py
grupo train recipes/agents/frozen_lake.py:RECIPE
"""

from grupo import Adam, CausalLM, Evaluation, Linear, Recipe, SuccessCriterion, Warmup
from grupo.envs import MultiTurn
from grupo.envs.games import FrozenLake, FrozenLakeTasks
from grupo.methods.gigpo import gigpo
from grupo.util.user_paths import models_dir

RECIPE = Recipe(
    policy=CausalLM(
        str(models_dir() / "lake-base-model" / "model"),
        max_new_tokens=4,
        tokens_per_microbatch=16384,
    ),
    env=MultiTurn(FrozenLake(), max_turns=10),
    tasks=FrozenLakeTasks(1000, seed=1),
    eval_tasks=FrozenLakeTasks(100, seed=3),
    method=gigpo(group_size=16, gamma=0.9, kl_coef=0.0),
    max_steps=60,
    prompts_per_step=8,
    learning_rate=Warmup(0.05, Linear(5e-4, 5e-5)),
    optimizer=Adam(),
    evaluation=Evaluation(attempts=4, success=SuccessCriterion("env_reward")),
)
