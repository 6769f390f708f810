"""The choice of the rollout with the least score, such as overthinking, measured on groups."""

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from statistics import fmean, linear_regression

from grupo.core.types import Group, Rollout
from grupo.util.errors import ConfigError


@dataclass(frozen=True)
class LeastScore:
    """Success of rollouts by a score: of the least in each group, and over all rollouts.

    Args:
        selected: Success of the rollout with the least score, mean over groups.
        mean: Success of all scored rollouts, mean over the same groups.
        slope: Change of success from the least possible score, 0, to the largest, 1, by least
            squares over all scored rollouts; NaN if all scores are equal.
        groups: Number of groups with a scored rollout.
        unscored: Number of rollouts without a score, which are left out.
    """

    selected: float
    mean: float
    slope: float
    groups: int
    unscored: int


def least_score(
    groups: Iterable[Group], term: str, success: Callable[[Rollout], bool]
) -> LeastScore:
    """The success of the rollout with the least value of a reward term in each group.

    Of equal values the first rollout is chosen.

    Args:
        groups: Groups of scored rollouts.
        term: Name of the reward term.
        success: Decides whether a rollout solves its task.

    Raises:
        ConfigError: No rollout has the term.
    """
    selected, means, pairs, unscored = [], [], [], 0
    for group in groups:
        scored = [r for r in group.rollouts if not math.isnan(_value(r, term))]
        unscored += len(group.rollouts) - len(scored)
        if scored:
            least = min(scored, key=lambda rollout: _value(rollout, term))
            selected.append(float(success(least)))
            means.append(fmean(float(success(r)) for r in scored))
            pairs += [(_value(r, term), float(success(r))) for r in scored]
    if not pairs:
        raise ConfigError(
            f"term: none of {unscored} rollouts has a score {term!r}. Allowed: a reward term of the"
            " rollouts."
        )
    scores, solved = zip(*pairs, strict=True)
    is_flat = min(scores) == max(scores)
    slope = math.nan if is_flat else linear_regression(scores, solved).slope
    return LeastScore(fmean(selected), fmean(means), slope, len(selected), unscored)


def _value(rollout: Rollout, term: str) -> float:
    return math.nan if rollout.error else rollout.reward_terms.get(term, math.nan)
