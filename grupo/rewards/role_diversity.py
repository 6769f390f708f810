"""Diversity of perspectives and of words, which is paid in well-formed answers alone."""

import math
import re
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from itertools import pairwise
from statistics import fmean, mean

from grupo.core.component import check_field, component
from grupo.core.paper import Paper, Source
from grupo.core.ranges import NonEmptyString
from grupo.core.types import Rollout, Task
from grupo.rewards.base import PerRolloutReward
from grupo.util.errors import ConfigError

TextMeasure = Callable[[str], float]  # a number in [0, 1]


def type_token_ratio(text: str) -> float:
    """Different words divided by words.

    >>> type_token_ratio("a b a c")
    0.75
    """
    words = text.split()
    return len(set(words)) / len(words) if words else 0.0


def distinct_bigrams(text: str) -> float:
    """Different pairs of neighbouring words divided by pairs: distinct-2.

    >>> distinct_bigrams("a b a c"), distinct_bigrams("a b a b")
    (1.0, 0.6666666666666666)
    """
    words = text.split()
    pairs = list(pairwise(words))
    return len(set(pairs)) / len(pairs) if pairs else 0.0


def normalised_entropy(text: str) -> float:
    """Entropy of the distribution of words, divided by the log of their number.

    >>> normalised_entropy("a b c d"), normalised_entropy("a a a")
    (1.0, 0.0)
    """
    counts = Counter(text.split())
    total = counts.total()
    if total < 2:
        return 0.0
    entropy = -sum(n / total * math.log(n / total) for n in counts.values())
    return entropy / math.log(total) + 0.0


@component
class RoleDiversity(PerRolloutReward):
    """Mean of the share of roles that an answer names and of its lexical diversity; 0 unformatted.

    With a weight below 1 beside a correctness of 0 or 1, a wrong answer is always below a right
    one. Without a list of roles in the task, the lexical diversity alone counts. The further
    numbers are `roles` and `lexical`. MultiRole-R1 (arXiv:2507.20187).

    Args:
        format: Above 0 for well-formed answers, such as `TagFormat()`.
        column: Column of the names of the roles that are asked for.
        measures: Measures of lexical diversity, which are averaged.
    """

    format: PerRolloutReward
    column: NonEmptyString = "roles"
    measures: tuple[TextMeasure, ...] = (type_token_ratio, distinct_bigrams, normalised_entropy)

    def __post_init__(self) -> None:
        check_field(self, "measures", bool(self.measures), "at least one measure")

    @property
    def reward_range(self) -> tuple[float, float]:
        return (0.0, 1.0)

    def score(self, task: Task, rollout: Rollout) -> Mapping[str, float]:
        text = rollout.text
        lexical = fmean(measure(text) for measure in self.measures)
        roles = _roles(task, self.column)
        named = fmean(_names(text, role) for role in roles) if roles else math.nan
        diversity = mean([named, lexical]) if roles else lexical
        well_formed = self.format.score(task, rollout)
        assert isinstance(well_formed, int | float), "a format is a plain number"
        score = diversity if well_formed > 0 else 0.0
        return {"score": score, "lexical": lexical} | ({"roles": named} if roles else {})

    def validate_tasks(self, tasks: Sequence[Task]) -> None:
        """Raise `ConfigError` for a column that is no list of names."""
        for task in tasks:
            _roles(task, self.column)


def _roles(task: Task, column: str) -> Sequence[str]:
    roles = task.columns.get(column, ())
    is_list = isinstance(roles, Sequence) and not isinstance(roles, str)
    if not is_list or not all(isinstance(role, str) and role for role in roles):
        raise ConfigError(
            f"tasks: {task.location or task.key}, column {column!r}: {roles!r}. Allowed: a list of"
            " names."
        )
    return list(dict.fromkeys(roles))


def _names(text: str, role: str) -> float:
    """1 if the text has the role as whole words, whatever their case, else 0."""
    return float(re.search(rf"(?<!\w){re.escape(role)}(?!\w)", text, re.IGNORECASE) is not None)


PAPER = Paper(
    title="Diversity-Enhanced Reasoning for Subjective Questions",
    kind="reward",
    use="A question has different answers for different people, and the reasoning should see them.",
    tags=("reward", "exploration"),
    catalogue=("multirole-r1",),
    source=Source("abstract", "the formulas are the catalogue's reading"),
    checked=("golden",),
    deviations=(
        "The weights 0.2 and 0.1, the guard by the format and the average of the measures are a"
        " choice: the abstract alone was open.",
    ),
    shown=(
        "docs/small_claims.md#diverse-roles",
        "tests/rewards/test_role_diversity.py::test_a_wrong_answer_of_full_diversity_is_below_any_right_one",
    ),
)
