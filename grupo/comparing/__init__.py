"""Methods x seeds x tasks, fairly: `grupo compare`, docs/compare.md."""

from grupo.comparing.budget import Budget, Seconds, Spent, Steps, Tokens, read
from grupo.comparing.comparison import Cell, Comparison, TaskSet, methods_on
from grupo.comparing.outcome import Outcome
from grupo.comparing.result import Difference, Line, Result
from grupo.comparing.running import compare, planned, written

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
