"""Programs that the policy writes, scored by the number that they print last."""

import math
from collections.abc import Sequence
from functools import partial

from grupo.core.component import component
from grupo.core.errors import ConfigError
from grupo.core.ranges import NonNegativeFloat
from grupo.core.types import Rollout, Task
from grupo.envs.code_tests import MAX_CHARS, last_code_block
from grupo.envs.timeouts import call_all_with_timeout
from grupo.envs.tools.sandbox import Sandbox
from grupo.rewards.base import RewardValue, SelfTimedReward
from grupo.rewards.extract_answer import AfterThinking, Extractor


@component
class PrintedNumber(SelfTimedReward):
    """1 if the last line that the program prints is the reference number, else 0.

    The numbers are equal if they differ by at most `rel_tol` times the larger magnitude. The
    program runs in the sandbox, and the comparison is outside of it. A program that fails or is
    stopped has another last line: the reason.

    Args:
        sandbox: Runs the programs; they have the standard library.
        rel_tol: Largest relative difference.
        extract: Finds the program in the rollout's text; an answer without a program scores 0.
    """

    sandbox: Sandbox = Sandbox()
    rel_tol: NonNegativeFloat = 1e-6
    extract: Extractor = AfterThinking(last_code_block)

    @property
    def reward_range(self) -> tuple[float, float]:
        return (0.0, 1.0)

    async def __call__(
        self, task: Task, rollouts: Sequence[Rollout]
    ) -> Sequence[RewardValue | Exception]:
        calls = [partial(self.score_text, task, rollout.text) for rollout in rollouts]
        return await call_all_with_timeout(calls, math.inf)  # the sandbox has a time limit

    def score_text(self, task: Task, text: str) -> float:
        """The score of one answer."""
        program = self.extract(text)
        if program is None or len(program) > MAX_CHARS:
            return 0.0
        try:
            output = self.sandbox.run(program)
        except UnicodeEncodeError:  # a lone surrogate
            return 0.0
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
    lines = output.split("\n") if not output.endswith("\n") else output.split("\n")[:-1]
    number = _number(lines[-1]) if lines else math.nan
    return math.isclose(number, reference, rel_tol=rel_tol)


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
