"""Train the base model of tic_tac_toe.py in minutes: it plays random squares.

python recipes/agents/tic_tac_toe_base_model.py
"""

from lake_demonstrations import next_move
from random_games import RandomGames
from toy_training import sft_recipe, train_toy_model

from grupo import CausalLM
from grupo.util.user_paths import models_dir

MODEL_DIR = models_dir() / "tic-tac-toe-base-model"
POLICY = CausalLM(str(MODEL_DIR / "start"), max_new_tokens=2, tokens_per_microbatch=8192)
SFT_RECIPE = sft_recipe(POLICY, next_move, RandomGames(10_000, seed=1), RandomGames(50, seed=2))
RECIPE = SFT_RECIPE.replace(max_steps=200, prompts_per_step=48)

if __name__ == "__main__":
    train_toy_model(RECIPE, MODEL_DIR, ())
