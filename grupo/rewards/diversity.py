"""Diversity of the texts of a group."""

from collections.abc import Hashable, Sequence

from grupo.core.component import component
from grupo.core.ranges import PositiveInt
from grupo.core.types import Rollout, Task


def distinct_ngrams(sequences: Sequence[Sequence[Hashable]], n: int) -> float:
    """Different n-grams of all sequences divided by all n-grams; 0 without any: distinct-n.

    Args:
        sequences: Sequences of tokens or words.
        n: Length of an n-gram.

    >>> distinct_ngrams([[1, 2, 3], [1, 2, 4]], 2)
    0.75
    """
    ngrams = [tuple(x[i : i + n]) for x in sequences for i in range(len(x) - n + 1)]
    return len(set(ngrams)) / len(ngrams) if ngrams else 0.0


@component
class DistinctNgrams:
    """The share of different n-grams among those of all answers of the group, in tokens.

    All rollouts of a group have the same value: as a reward term it needs the weight 0, or a
    reader such as `VarianceAware`. MMR1, LengSicong/MMR1, verl/curriculum/metrics.py.

    Args:
        n: Length of an n-gram.

    >>> from grupo.core.types import Response
    >>> rollouts = [Rollout((("?", Response(x, ())),)) for x in ((1, 2, 3), (1, 2, 4))]
    >>> DistinctNgrams(2)(Task("k", "?"), rollouts)
    [0.75, 0.75]
    """

    n: PositiveInt = 3

    @property
    def reward_range(self) -> tuple[float, float]:
        """The smallest and the largest value."""
        return (0.0, 1.0)

    def __call__(self, task: Task, rollouts: Sequence[Rollout]) -> Sequence[float]:
        answers = [[item for _, a in r.turns for item in a.items] for r in rollouts]
        return [distinct_ngrams(answers, self.n)] * len(rollouts)
