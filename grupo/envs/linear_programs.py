"""Linear and integer programs as text, solved by GLPK and compared with the task's optimum."""

import math
from collections.abc import Sequence

from grupo.core.component import component
from grupo.core.ranges import FinitePositive, NonEmptyString
from grupo.core.types import Task
from grupo.envs.tools.program_sandbox import ProgramRun, ProgramSandbox
from grupo.util.errors import ConfigError

SOLUTION = "solution.txt"
GLPSOL = ProgramSandbox(
    ("glpsol", "--lp", "model.lp", "--write", SOLUTION),
    outputs=(SOLUTION,),
    package="the package glpk-utils of Debian and Ubuntu",
)


@component
class Optimum:
    """1 if a model has an optimum, and it is that of the task; 0 if not, or without an optimum.

    A model that is unbounded, infeasible or not of the solver's language has none. The optimum says
    nothing about the model's form: `minimize x` with `x = 42` has the optimum 42.

    Args:
        column: Column of the task with the optimal value.
        tolerance: Largest difference, relative to the value, or absolute for values below 1.
    """

    column: NonEmptyString = "optimum"
    tolerance: FinitePositive = 1e-6

    def __call__(self, task: Task, run: ProgramRun) -> float:
        found = optimal_value(run.outputs.get(SOLUTION, b"").decode(errors="replace"))
        wanted = self._wanted(task)
        if found is None:
            return 0.0
        return float(abs(found - wanted) <= self.tolerance * max(1.0, abs(wanted)))

    def validate_tasks(self, tasks: Sequence[Task]) -> None:
        """Raise `ConfigError` for a task without the optimal value."""
        for task in tasks:
            self._wanted(task)

    def _wanted(self, task: Task) -> float:
        try:
            value = float(str(task.columns[self.column]))
            if math.isfinite(value):
                return value
        except (KeyError, ValueError):
            pass
        raise ConfigError(
            f"tasks: {task.location or task.key}, column {self.column!r}:"
            f" {task.columns.get(self.column)!r}. Allowed: the optimal value, a finite number."
        )


def optimal_value(solution: str) -> float | None:
    r"""The objective of a solution file of GLPK, or None if it is not optimal.

    The line `s` of the file has the kind of the solution, its status and its objective: two letters
    for a basic solution, primal and dual, of which both must be feasible (f), and one for an
    integer solution, which must be optimal (o). See the reference manual of GLPK, section 2.10.

    >>> optimal_value("c Problem:\ns bas 2 3 f f 12.5\n"), optimal_value("s mip 2 3 o 12\n")
    (12.5, 12.0)
    >>> optimal_value("s bas 2 3 n f 0\n")
    """
    for line in solution.split("\n"):
        match line.split(" "):
            case ["s", "bas", _, _, "f", "f", value] | ["s", "mip", _, _, "o", value]:
                return float(value)
    return None
