"""Reward of jigsaw puzzles: the share of tiles that an answer places right."""

import re
from collections.abc import Mapping, Sequence

from grupo.core.component import component
from grupo.core.extract_answer import Extractor, InsideTagOrWhole
from grupo.core.types import Rollout, Task
from grupo.rewards.base import PerRolloutReward
from grupo.util.errors import ConfigError

NUMBER = re.compile(r"\d{1,4}")
NO_PERMUTATION = -1.0


@component
class PlacedTiles(PerRolloutReward):
    """Fraction of the tiles that the answer places right; 0 unless it is a permutation.

    The further number `permutation` is another one for each permutation and -1 without one: with
    it `MediumDifficulty` counts the different answers of a group.

    PC-GRPO, Jeddi et al., 2025, arXiv:2512.14944.

    Args:
        extract: Finds the answer in the rollout's text; its whole numbers are the permutation.

    >>> from grupo.core.types import Response
    >>> texts = ("2 0 1 3", "2, 0, 3, 1", "2 0 3", "2 2 3 1")
    >>> rollouts = [Rollout((("?", Response((), (), text=text)),)) for text in texts]
    >>> [found["score"] for found in PlacedTiles()(Task("k", "?", "2 0 3 1"), rollouts)]
    [0.5, 1.0, 0.0, 0.0]
    """

    extract: Extractor = InsideTagOrWhole("answer")

    @property
    def reward_range(self) -> tuple[float, float]:
        return (0.0, 1.0)

    def score(self, task: Task, rollout: Rollout) -> Mapping[str, float]:
        right = _reference(task)
        placed = _numbers(self.extract(rollout.text) or "")
        if len(placed) != len(right) or not _is_permutation(placed):
            return {"score": 0.0, "permutation": NO_PERMUTATION}
        hits = sum(a == b for a, b in zip(placed, right, strict=True))
        return {"score": hits / len(right), "permutation": float(_rank(placed))}

    def validate_tasks(self, tasks: Sequence[Task]) -> None:
        """Raise `ConfigError` for a task whose reference answer is no permutation."""
        for task in tasks:
            _reference(task)


def _reference(task: Task) -> list[int]:
    right = _numbers(str(task.reference_answer))
    if not _is_permutation(right):
        raise ConfigError(
            f"tasks: {task.location or task.key}: reference answer {task.reference_answer!r}."
            " Allowed: a permutation of the numbers from 0, such as '2 0 3 1'."
        )
    return right


def _numbers(text: str) -> list[int]:
    return [int(number) for number in NUMBER.findall(text)]


def _is_permutation(numbers: list[int]) -> bool:
    return bool(numbers) and sorted(numbers) == list(range(len(numbers)))


def _rank(permutation: list[int]) -> int:
    """The number of a permutation in lexicographic order; exact as a float up to 18 tiles."""
    rank, left = 0, sorted(permutation)
    for number in permutation:
        rank = rank * len(left) + left.index(number)
        left.remove(number)
    return rank
