"""GRPO teaches a small real model to write SQL queries, scored by the rows that they return: `sql`.

grupo train recipes/real/sql.py:RECIPE --model PATH
"""

from pathlib import Path

from grupo.util.importing import load_module_file

RECIPE = load_module_file(Path(__file__).with_name("training.py")).family_recipe("sql")
