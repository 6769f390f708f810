"""A beginner for grids, grown in minutes: it was shown the way, and not for long enough.

python recipes/agents/grid_beginner.py
"""

from pathlib import Path

from growing import grow, lessons
from strolls import MOVES, Strolls, next_action

from grupo import CausalLM, Cosine, Warmup
from grupo.envs.games import Grids

HOME = Path(".grupo/models/grid-beginner")
POLICY = CausalLM(str(HOME / "start"), limit=4, budget=8192)
ROOM = "MiniGrid-Empty-Random-5x5-v0"
TRAINED, HELD_OUT = Grids(20, ROOM), Grids(12, ROOM, skip=20)
RECIPE = lessons(POLICY, next_action, Strolls(TRAINED), Strolls(HELD_OUT, each=5)).but(
    steps=90, lr=Warmup(0.05, Cosine(4e-3, 4e-4))
)

if __name__ == "__main__":
    missions = [task.prompt.splitlines()[0] for task in TRAINED.load()]
    grow(RECIPE, HOME, (*missions, *MOVES))
