"""GRPO teaches a small real model to write sentences without capitals: `lower_case`.

grupo train recipes/real/lower_case.py:RECIPE --model PATH
"""

from pathlib import Path

from grupo.util.importing import load_module_file

RECIPE = load_module_file(Path(__file__).with_name("training.py")).family_recipe("lower_case")
