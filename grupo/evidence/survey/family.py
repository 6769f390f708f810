"""Families of tasks: many tasks of one kind, in a fixed order, with a reward for all of them."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import islice
from random import Random
from typing import Any

from grupo.core.component import component
from grupo.core.ranges import NonEmptyString, NonNegativeInt, PositiveInt
from grupo.core.types import Task
from grupo.envs import RewardTerm, SingleTurn
from grupo.rewards.base import Reward
from grupo.rollouts.evaluate import SuccessCriterion
from grupo.tasks.base import task_key
from grupo.util.errors import ConfigError
from grupo.util.rng import make_rng

Row = Mapping[str, Any]
MAX_REPEATS = 1_000  # repeated prompts in a row, after which a family has no further task


@component
class TaskFamily:
    """Tasks of one kind, made from rows of data by a wording.

    Args:
        name: Name of the family; the source of its tasks.
        rows: Draws the rows of the tasks, endlessly or until there are no more. The column
            "answer" is the reference answer.
        wordings: Templates of the prompt, with names of columns in braces. The first one is used,
            the others were compared with it.
        reward: Scores the answers.
        max_new_tokens: Limit of an answer, in tokens.
        stop_strings: Strings that end an answer, besides the end token.
        min_reward: The smallest reward of an answer that counts as right.
        guess: Fraction of tasks that a constant or random answer solves, such as 0.5 for yes or no.
    """

    name: NonEmptyString
    rows: Callable[[Random], Iterable[Row]]
    wordings: tuple[NonEmptyString, ...]
    reward: Reward
    max_new_tokens: PositiveInt = 16
    stop_strings: tuple[NonEmptyString, ...] = ()
    min_reward: float = 1.0
    guess: float = 0.0

    def __post_init__(self) -> None:
        if not self.wordings:
            raise ConfigError(f"wordings: none for {self.name!r}. Allowed: at least one.")

    @property
    def env(self) -> SingleTurn:
        """One prompt and one answer, scored by the family's reward."""
        return SingleTurn((RewardTerm(self.name, self.reward),))

    @property
    def success(self) -> SuccessCriterion:
        """Decides whether an answer is right."""
        return SuccessCriterion(self.name, self.min_reward)

    def tasks(self, wording: int = 0) -> Iterator[Task]:
        """The tasks with distinct prompts, in an order that is always the same.

        Args:
            wording: Index of the wording.
        """
        prompts: set[str] = set()
        repeats = 0
        for row in self.rows(make_rng(0, "family", self.name)):
            prompt = self.wordings[wording].format_map(row)
            repeats = repeats + 1 if prompt in prompts else 0
            if repeats >= MAX_REPEATS:
                return
            if not repeats:
                prompts.add(prompt)
                yield self._task(prompt, row)

    def _task(self, prompt: str, row: Row) -> Task:
        messages = ({"role": "user", "content": prompt},)
        return Task(task_key(messages), messages, row.get("answer"), self.name, dict(row))


@component
class FamilyTasks:
    """Consecutive tasks of a family as a source of tasks.

    Args:
        family: The family.
        first: Index of the first task.
        count: Number of tasks at most.
        wording: Index of the wording.
    """

    family: TaskFamily
    first: NonNegativeInt = 0
    count: PositiveInt = 50
    wording: NonNegativeInt = 0

    def __post_init__(self) -> None:
        if self.wording >= len(self.family.wordings):
            raise ConfigError(
                f"wording: {self.wording}. Allowed: 0 to {len(self.family.wordings) - 1}."
            )

    def load(self) -> Sequence[Task]:
        tasks = self.family.tasks(self.wording)
        loaded = list(islice(tasks, self.first, self.first + self.count))
        if not loaded:
            raise ConfigError(
                f"first: {self.first}, and {self.family.name!r} has fewer tasks. Allowed: less."
            )
        return loaded
