"""Tasks: where questions come from, and how some are kept for measuring."""

from grupo.tasks.base import Indexed, TaskSource, key_of
from grupo.tasks.columns import Columns
from grupo.tasks.finding import find
from grupo.tasks.functions import FromFunction, FromPython
from grupo.tasks.mixing import Mix
from grupo.tasks.naming import named
from grupo.tasks.reasoning import ReasoningGym
from grupo.tasks.rows import Rows
from grupo.tasks.splitting import Without, check_disjoint, split

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
