"""A beginner for tic-tac-toe, grown in minutes: it puts its mark just anywhere.

python recipes/agents/player.py
"""

from pathlib import Path

from blind import Blind
from growing import grow, lessons
from walks import next_move

from grupo import CausalLM

HOME = Path(".grupo/models/player")
POLICY = CausalLM(str(HOME / "start"), limit=2, budget=8192)
LESSONS = lessons(POLICY, next_move, Blind(10_000, seed=1), Blind(50, seed=2))
RECIPE = LESSONS.but(steps=200, prompts=48)

if __name__ == "__main__":
    grow(RECIPE, HOME, ())
