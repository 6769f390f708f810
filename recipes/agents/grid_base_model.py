"""Train the base model of grids.py in minutes, from few demonstrations of shortest paths.

python recipes/agents/grid_base_model.py
"""

from grid_demonstrations import MOVES, GridWalks, next_action
from toy_training import sft_recipe, train_toy_model

from grupo import CausalLM, Cosine, Warmup
from grupo.envs.games import MiniGridTasks
from grupo.util.user_paths import models_dir

MODEL_DIR = models_dir() / "grid-base-model"
POLICY = CausalLM(str(MODEL_DIR / "start"), max_new_tokens=4, tokens_per_microbatch=8192)
ENV_ID = "MiniGrid-Empty-Random-5x5-v0"
TRAIN_GRIDS, EVAL_GRIDS = MiniGridTasks(20, ENV_ID), MiniGridTasks(12, ENV_ID, skip=20)
RECIPE = sft_recipe(
    POLICY, next_action, GridWalks(TRAIN_GRIDS), GridWalks(EVAL_GRIDS, walks_per_grid=5)
).replace(max_steps=90, learning_rate=Warmup(0.05, Cosine(4e-3, 4e-4)))

if __name__ == "__main__":
    missions = [task.prompt.splitlines()[0] for task in TRAIN_GRIDS.load()]
    train_toy_model(RECIPE, MODEL_DIR, (*missions, *MOVES))
