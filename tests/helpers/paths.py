"""The path of the repository, and the environment in which child processes import `tests`."""

import os
from pathlib import Path

ROOT = Path(__file__).parents[2]
CHILD_ENV = {"PYTHONPATH": os.pathsep.join(filter(None, (str(ROOT), os.environ.get("PYTHONPATH"))))}
