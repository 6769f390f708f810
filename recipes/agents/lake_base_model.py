"""Train the base model of frozen_lake.py in a minute: it knows the moves, and walks at random.

python recipes/agents/lake_base_model.py
"""

from lake_demonstrations import RandomWalks, next_move
from toy_training import sft_recipe, train_toy_model

from grupo import CausalLM
from grupo.envs.games.frozen_lake import MOVES, FrozenLakeTasks
from grupo.util.user_paths import models_dir

MODEL_DIR = models_dir() / "lake-base-model"
POLICY = CausalLM(str(MODEL_DIR / "start"), max_new_tokens=4, tokens_per_microbatch=8192)
RECIPE = sft_recipe(
    POLICY,
    next_move,
    RandomWalks(FrozenLakeTasks(1000, seed=1)),
    RandomWalks(FrozenLakeTasks(50, seed=2), walks_per_lake=1),
)

if __name__ == "__main__":
    train_toy_model(RECIPE, MODEL_DIR, MOVES)
