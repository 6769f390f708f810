"""The base class of rewards that run the programs of answers in the sandbox."""

import math
from abc import abstractmethod
from collections.abc import Sequence
from functools import partial

from grupo.core.extract_answer import Extractor
from grupo.core.types import Rollout, Task
from grupo.envs.timeouts import call_all_with_timeout
from grupo.rewards.base import RewardValue, SelfTimedReward

MAX_CHARS = 100_000  # of a program; a longer one scores 0


class ProgramReward(SelfTimedReward):
    """Scores the program of each answer, from 0 to 1; an answer without a program scores 0.

    The sandbox limits the time of each program. Subclasses define `score_program`.

    Args:
        extract: Finds the program in the rollout's text.
    """

    extract: Extractor  # a field of each subclass, where it is read-only

    @property
    def reward_range(self) -> tuple[float, float]:
        return (0.0, 1.0)

    async def __call__(
        self, task: Task, rollouts: Sequence[Rollout]
    ) -> Sequence[RewardValue | Exception]:
        calls = [partial(self.score_text, task, rollout.text) for rollout in rollouts]
        return await call_all_with_timeout(calls, math.inf)

    def score_text(self, task: Task, text: str) -> float:
        """The score of one answer."""
        program = self.extract(text)
        if program is None or len(program) > MAX_CHARS or not is_unicode(program):
            return 0.0
        return self.score_program(task, program)

    @abstractmethod
    def score_program(self, task: Task, program: str) -> float:
        """The score of a program."""


def is_unicode(text: str) -> bool:
    r"""False for a text with half of a surrogate pair, which no file can hold.

    >>> is_unicode("é"), is_unicode("\ud800")
    (True, False)
    """
    return not any("\ud800" <= char <= "\udfff" for char in text)
