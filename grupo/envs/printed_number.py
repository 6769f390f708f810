"""Programs that the policy writes, scored by the number that they print last."""

import math
from collections.abc import Sequence

from grupo.core.component import component
from grupo.core.extract_answer import AfterThinking, Extractor
from grupo.core.ranges import NonNegativeFloat
from grupo.core.types import Task
from grupo.envs.code_tests import last_code_block
from grupo.envs.program_reward import ProgramReward
from grupo.envs.tools.sandbox import Sandbox
from grupo.util.errors import ConfigError


@component
class PrintedNumber(ProgramReward):
    """1 if the last line that the program prints is the reference number, else 0.

    The numbers are equal if they differ by at most `rel_tol` times the larger magnitude. The
    program runs in the sandbox, and the comparison is outside of it. A program that fails or is
    stopped has another last line: the reason.

    Args:
        sandbox: Runs the programs; they have the standard library and the sandbox's packages.
        rel_tol: Largest relative difference.
        extract: Finds the program in the rollout's text; an answer without a program scores 0.
    """

    sandbox: Sandbox = Sandbox()
    rel_tol: NonNegativeFloat = 1e-6
    extract: Extractor = AfterThinking(last_code_block)  # pyrefly: ignore[bad-override]

    def score_program(self, task: Task, program: str) -> float:
        output = self.sandbox.run(program)
        return float(is_close(output, reference_number(task), self.rel_tol))

    def validate_tasks(self, tasks: Sequence[Task]) -> None:
        """Raise `ConfigError` for a task whose reference answer is no finite number."""
        for task in tasks:
            reference_number(task)


def is_close(output: str, reference: float, rel_tol: float) -> bool:
    r"""True if the last line of an output is the reference number.

    >>> is_close("x = 2\n10.000001\n", 10.0, 1e-6), is_close("10.1", 10.0, 1e-6)
    (True, False)
    """
    last_line = output.removesuffix("\n").rpartition("\n")[2]
    return math.isclose(_number(last_line), reference, rel_tol=rel_tol)


def reference_number(task: Task) -> float:
    """The reference answer as a number.

    Raises:
        ConfigError: It is none, or it is not finite.
    """
    number = _number(str(task.reference_answer))
    if not math.isfinite(number):
        raise ConfigError(
            f"tasks: {task.location or task.key}: the reference answer"
            f" {str(task.reference_answer)[:80]!r}. Allowed: a finite number."
        )
    return number


def _number(text: str) -> float:
    try:
        return float(text)
    except ValueError:
        return math.nan
