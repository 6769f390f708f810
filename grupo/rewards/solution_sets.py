"""Rewards for answers that are a set of solutions."""

import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from grupo.core.component import component
from grupo.core.extract_answer import Extractor, final_answer
from grupo.core.types import Rollout, Task
from grupo.rewards.base import PerRolloutReward, reference_text
from grupo.util.errors import ConfigError
from grupo.util.json_text import parse_json

MAX_SOLUTION_CHARS = 100_000


@component
class SetOfSolutions(PerRolloutReward):
    r"""1 for all solutions of a task, `partial` for some and no wrong one, else 0.

    The answer and the reference answer are lists of solutions in JSON: `[[1, 2], [2, 1]]`. Another
    answer scores `unparsable`. A list with a wrong or a doubled solution scores 0, so that a list
    of everything earns nothing.

    ToTRL, Wu et al. (arXiv:2505.12717), scores the full set 1 and an answer that is no list -1.

    Args:
        partial: Score of some of the solutions, without a wrong one.
        unparsable: Score of an answer that is no list.
        extract: Finds the answer in the rollout's text.

    >>> from grupo.core.types import Response
    >>> texts = ("[[2, 1], [1, 2]]", "[[1, 2]]", "[[1, 2], [3, 3]]", "1, 2")
    >>> rollouts = [Rollout((("?", Response((), (), text=text)),)) for text in texts]
    >>> SetOfSolutions(partial=0.5)(Task("k", "?", [[1, 2], [2, 1]]), rollouts)
    [1.0, 0.5, 0.0, -1.0]
    """

    partial: float = 0.0
    unparsable: float = -1.0
    extract: Extractor = final_answer

    @property
    def reward_range(self) -> tuple[float, float]:
        values = (0.0, 1.0, self.partial, self.unparsable)
        return (min(values), max(values))

    def score(self, task: Task, rollout: Rollout) -> float:
        text = self.extract(rollout.text)
        answer = _parse_solutions(text) if text and len(text) <= MAX_SOLUTION_CHARS else None
        if answer is None:
            return self.unparsable
        truth = _true_solutions(task)
        distinct = set(answer)
        if len(distinct) < len(answer) or not distinct <= truth:
            return 0.0
        return 1.0 if distinct == truth else self.partial * bool(distinct)

    def validate_tasks(self, tasks: Sequence[Task]) -> None:
        """Raise `ConfigError` for a task whose reference answer is no list of solutions."""
        for task in tasks:
            _true_solutions(task)


def _true_solutions(task: Task) -> set[Any]:
    solutions = _parse_solutions(task.reference_answer)
    if solutions is None:
        raise ConfigError(
            f"tasks: {task.location or task.key}: the reference answer"
            f" {str(task.reference_answer)[:80]!r}. Allowed: a list of solutions, or it in JSON."
        )
    return set(solutions)


def _parse_solutions(answer: Any) -> list[Any] | None:
    """The solutions as values that compare; None if the answer is no list."""
    try:
        parsed = parse_json(answer) if isinstance(answer, str) else answer
    except (ValueError, RecursionError):
        return None
    return [_frozen(solution) for solution in parsed] if isinstance(parsed, list) else None


def _frozen(value: Any) -> Any:
    """A value of JSON that can be an element of a set; True is not 1."""
    if isinstance(value, Mapping):
        return ("object", frozenset((key, _frozen(item)) for key, item in value.items()))
    if isinstance(value, list | tuple):
        return ("list", tuple(map(_frozen, value)))
    return ("bool", value) if isinstance(value, bool) else value


Checker = Callable[[Task, Any], bool]


@component
class CheckedSolutions(PerRolloutReward):
    r"""The share of a task's solutions that a list has, by a checker; 0 with a wrong one.

    The reference answer is the number of solutions. Use it where solutions are easy to check and
    many to list; an answer that lists one solution twice scores 0. The checker must accept a
    solution in one form only, or two forms of it count as two solutions.

    Args:
        checker: `checker(task, solution)`: True if a solution, as parsed from JSON, is right.
        extract: Finds the answer in the rollout's text.
    """

    checker: Checker
    extract: Extractor = final_answer

    @property
    def reward_range(self) -> tuple[float, float]:
        return (0.0, 1.0)

    def score(self, task: Task, rollout: Rollout) -> float:
        text = self.extract(rollout.text)
        parsed = _parse_solutions(text) if text and len(text) <= MAX_SOLUTION_CHARS else None
        count = _solution_count(task)
        if not parsed or len(set(parsed)) < len(parsed) or len(parsed) > count:
            return 0.0
        right = all(self.checker(task, solution) for solution in parse_json(text or ""))
        return len(parsed) / count if right else 0.0

    def validate_tasks(self, tasks: Sequence[Task]) -> None:
        """Raise `ConfigError` for a task whose reference answer is no number of solutions."""
        for task in tasks:
            _solution_count(task)


def _solution_count(task: Task) -> int:
    text = reference_text(task)
    if not re.fullmatch(r"[1-9][0-9]{0,8}", text):
        raise ConfigError(
            f"tasks: {task.location or task.key}: the reference answer {text[:80]!r}. Allowed: the"
            " number of solutions, 1 or more."
        )
    return int(text)
