"""Methods x seeds x tasks, fairly: `grupo compare`, docs/compare.md."""

from grupo.compare.budget import Budget, Seconds, Spent, Steps, Tokens, read
from grupo.compare.experiment import Cell, Comparison, TaskSet, methods_on
from grupo.compare.result import Difference, Line, Result
from grupo.compare.run import compare, planned, written
from grupo.compare.run_status import Outcome

__all__ = [
    "Budget",
    "Cell",
    "Comparison",
    "Difference",
    "Line",
    "Outcome",
    "Result",
    "Seconds",
    "Spent",
    "Steps",
    "TaskSet",
    "Tokens",
    "compare",
    "methods_on",
    "planned",
    "read",
    "written",
]
