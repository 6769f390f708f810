"""GRPO teaches a small real model to add two numbers of two digits: `sums_2_digits`.

grupo train recipes/real/two_digit_sums.py:RECIPE --model PATH
"""

from pathlib import Path

from grupo.util.importing import load_module_file

RECIPE = load_module_file(Path(__file__).with_name("training.py")).family_recipe("sums_2_digits")
