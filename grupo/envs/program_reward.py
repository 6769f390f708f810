"""The base class of rewards that run the programs of answers in the sandbox."""

import math
from abc import abstractmethod
from collections.abc import Callable, Sequence
from functools import partial

from grupo.core.extract_answer import Extractor
from grupo.core.types import Rollout, Task
from grupo.core.usage import add_external_usage
from grupo.envs.timeouts import call_all_with_timeout
from grupo.rewards.base import RewardValue, SelfTimedReward

MAX_CHARS = 100_000  # of a program; a longer one scores 0


class ProgramReward(SelfTimedReward):
    """Scores the program of each answer, from 0 to 1; an answer without a program scores 0.

    The sandbox limits the time of each program. Subclasses define `score_program`. The number of
    answers whose program is executed is counted as `usage/executions`.

    Args:
        extract: Finds the program in the rollout's text.
    """

    extract: Extractor  # a field of each subclass, where it is read-only

    @property
    def reward_range(self) -> tuple[float, float] | None:
        return (0.0, 1.0)

    async def __call__(
        self, task: Task, rollouts: Sequence[Rollout]
    ) -> Sequence[RewardValue | Exception]:
        executed: list[str] = []  # its method `append` is safe in threads
        calls = [
            partial(self.score_text, task, rollout.text, executed.append) for rollout in rollouts
        ]
        values = await call_all_with_timeout(calls, math.inf)
        if executed:
            add_external_usage({"executions": float(len(executed))})
        return values

    def score_text(
        self, task: Task, text: str, on_execution: Callable[[str], None] | None = None
    ) -> RewardValue:
        """The score of one answer.

        Args:
            task: The task.
            text: The rollout's text.
            on_execution: Called with a program before it is executed.
        """
        program = self.extract(text)
        if program is None or len(program) > MAX_CHARS or not is_unicode(program):
            return 0.0
        if on_execution:
            on_execution(program)
        return self.score_program(task, program)

    @abstractmethod
    def score_program(self, task: Task, program: str) -> RewardValue:
        """The score of a program."""


def is_unicode(text: str) -> bool:
    r"""False for a text with half of a surrogate pair, which no file can hold.

    >>> is_unicode("é"), is_unicode("\ud800")
    (True, False)
    """
    return not any("\ud800" <= char <= "\udfff" for char in text)
