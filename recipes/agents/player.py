"""A beginner for tic-tac-toe, grown in minutes: it puts its mark just anywhere.

python recipes/agents/player.py
"""

from pathlib import Path

from blind import Blind
from growing import grow, lessons
from walks import next_move

from grupo import CausalLM

MODEL_DIR = Path(".grupo/models/player")
POLICY = CausalLM(str(MODEL_DIR / "start"), max_new_tokens=2, tokens_per_microbatch=8192)
SFT_RECIPE = lessons(POLICY, next_move, Blind(10_000, seed=1), Blind(50, seed=2))
RECIPE = SFT_RECIPE.replace(max_steps=200, prompts_per_step=48)

if __name__ == "__main__":
    grow(RECIPE, MODEL_DIR, ())
