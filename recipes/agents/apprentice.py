"""Grow the beginner of a recipe in which a tool is learned, shown by a novice: in a few minutes.

python recipes/agents/apprentice.py recipes/agents/atlas.py
"""

import sys

from grupo.core.console import out
from grupo.core.importing import find
from grupo.report.progress_bar import Live
from grupo.toy import ensure
from grupo.toy.tool_use import blind

if __name__ == "__main__":
    beginner, recipe = (find(f"{sys.argv[1]}:{name}") for name in ("BEGINNER", "RECIPE"))
    tasks = recipe.held_out.load()
    print(f"Who never reads gets {blind(tasks):.1%} of {len(tasks)} held-out tasks right at best.")
    print(f"The model is in {ensure(beginner, Live(out))}")
