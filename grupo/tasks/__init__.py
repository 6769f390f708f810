"""Tasks: where questions come from, and how some are kept for measuring."""

from grupo.tasks.base import Indexed, TaskSource, key_of
from grupo.tasks.columns import Columns
from grupo.tasks.dataset import Rows
from grupo.tasks.finding import find
from grupo.tasks.mixture import Mix
from grupo.tasks.parse import named
from grupo.tasks.python import FromFunction, FromPython
from grupo.tasks.reasoning_gym import ReasoningGym
from grupo.tasks.split import Without, check_disjoint, split

__all__ = [
    "Columns",
    "FromFunction",
    "FromPython",
    "Indexed",
    "Mix",
    "ReasoningGym",
    "Rows",
    "TaskSource",
    "Without",
    "check_disjoint",
    "find",
    "key_of",
    "named",
    "split",
]
