"""Grow the beginner of a recipe in which a tool is learned, shown by a novice: in a few minutes.

python recipes/agents/apprentice.py recipes/agents/atlas.py
"""

import sys

from grupo.core.console import out
from grupo.core.importing import import_object
from grupo.report.progress_bar import ProgressDisplay
from grupo.toy import ensure_trained
from grupo.toy.tool_use import best_constant_accuracy

if __name__ == "__main__":
    beginner, recipe = (import_object(f"{sys.argv[1]}:{name}") for name in ("BEGINNER", "RECIPE"))
    tasks = recipe.held_out.load()
    print(
        f"Who never reads gets {best_constant_accuracy(tasks):.1%} of {len(tasks)} held-out tasks right at best."
    )
    print(f"The model is in {ensure_trained(beginner, ProgressDisplay(out))}")
