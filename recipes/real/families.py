"""The families of tasks by name: what `survey.py` measures, and what recipes of this folder train.

A recipe of another family takes one line: see `two_digit_sums.py`.
"""

from collections.abc import Mapping
from pathlib import Path

from grupo.evidence.survey import TaskFamily
from grupo.util.importing import load_module_file

MODULES = ("number_families", "text_families", "format_families", "knowledge_families")


def _load_families() -> Mapping[str, TaskFamily]:
    paths = (Path(__file__).with_name(f"{name}.py") for name in MODULES)
    families = [family for path in paths for family in load_module_file(path).FAMILIES]
    return {family.name: family for family in families}


FAMILIES = _load_families()
