"""A beginner for the lake, grown in a minute: it knows the moves, and walks blindly.

python recipes/agents/beginner.py
"""

from pathlib import Path

from growing import grow, lessons
from walks import Walks, next_move

from grupo import CausalLM
from grupo.envs.games.frozen_lake import MOVES, Lakes

HOME = Path(".grupo/models/lake-beginner")
POLICY = CausalLM(str(HOME / "start"), limit=4, budget=8192)
RECIPE = lessons(POLICY, next_move, Walks(Lakes(1000, seed=1)), Walks(Lakes(50, seed=2), each=1))

if __name__ == "__main__":
    grow(RECIPE, HOME, MOVES)
