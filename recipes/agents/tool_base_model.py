"""Train the base model of a tool recipe in a few minutes, on noisy demonstrations.

python recipes/agents/tool_base_model.py recipes/agents/sql_tool.py
"""

import sys

from grupo.report.progress_bar import ProgressDisplay
from grupo.toy import ensure_trained
from grupo.toy.tool_use import best_constant_accuracy
from grupo.util.console import out
from grupo.util.importing import import_object

if __name__ == "__main__":
    path = sys.argv[1]
    base_model, recipe = (import_object(f"{path}:{name}") for name in ("BASE_MODEL", "RECIPE"))
    tasks = recipe.eval_tasks.load()
    accuracy = best_constant_accuracy(tasks)
    print(f"The best constant answer is correct for {accuracy:.1%} of {len(tasks)} eval tasks.")
    print(f"The model is in {ensure_trained(base_model, ProgressDisplay(out))}")
