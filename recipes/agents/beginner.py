"""A beginner for the lake, grown in a minute: it knows the moves, and walks blindly.

python recipes/agents/beginner.py
"""

from pathlib import Path

from growing import grow, lessons
from walks import Walks, next_move

from grupo import CausalLM
from grupo.envs.games.frozen_lake import MOVES, FrozenLakeTasks

MODEL_DIR = Path(".grupo/models/lake-beginner")
POLICY = CausalLM(str(MODEL_DIR / "start"), max_new_tokens=4, tokens_per_microbatch=8192)
RECIPE = lessons(
    POLICY,
    next_move,
    Walks(FrozenLakeTasks(1000, seed=1)),
    Walks(FrozenLakeTasks(50, seed=2), walks_per_lake=1),
)

if __name__ == "__main__":
    grow(RECIPE, MODEL_DIR, MOVES)
