"""A beginner for grids, grown in minutes: it was shown the way, and not for long enough.

python recipes/agents/grid_beginner.py
"""

from pathlib import Path

from growing import grow, lessons
from strolls import MOVES, Strolls, next_action

from grupo import CausalLM, Cosine, Warmup
from grupo.envs.games import MiniGridTasks

MODEL_DIR = Path(".grupo/models/grid-beginner")
POLICY = CausalLM(str(MODEL_DIR / "start"), max_new_tokens=4, tokens_per_microbatch=8192)
ROOM_NAME = "MiniGrid-Empty-Random-5x5-v0"
TRAIN_GRIDS, EVAL_GRIDS = MiniGridTasks(20, ROOM_NAME), MiniGridTasks(12, ROOM_NAME, skip=20)
RECIPE = lessons(
    POLICY, next_action, Strolls(TRAIN_GRIDS), Strolls(EVAL_GRIDS, walks_per_grid=5)
).replace(max_steps=90, learning_rate=Warmup(0.05, Cosine(4e-3, 4e-4)))

if __name__ == "__main__":
    missions = [task.prompt.splitlines()[0] for task in TRAIN_GRIDS.load()]
    grow(RECIPE, MODEL_DIR, (*missions, *MOVES))
