"""Group-sequential comparison of two arms over paired runs: stop early, with a stated error rate.

The differences of pairs are examined at planned numbers of pairs, the looks. The test is the exact
sign-flip test of the mean with an alpha-spending function. The null hypothesis is that the two runs
of a pair are exchangeable: both signs of every difference are then equally probable. The
probability to stop with a difference at any look is therefore at most alpha, for any distribution.

Lan and DeMets, 1983 (spending); Jennison and Turnbull, 1989 (repeated confidence intervals); Lan,
Simon and Halperin, 1982 (conditional power).
"""

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

import numpy as np
from scipy import stats

from grupo.core.component import check_field, component
from grupo.core.ranges import OpenProbability, PositiveFloat, PositiveInt
from grupo.util.statistics import Interval, standardised_mean, t_statistic

GREATER = "greater"
SMALLER = "smaller"
INCONCLUSIVE = "inconclusive"
CONTINUE = "continue"
FREE_SIGNS = 16  # further pairs flip with the pair 16 before them: the test remains exact
ROUND_DIGITS = 12  # sums that differ by less, relative to the sum of magnitudes, are ties
BISECTIONS = 30
UNBOUNDED = (-math.inf, math.inf)


@dataclass(frozen=True)
class Decision:
    """The state of a comparison of two arms after a number of pairs.

    Args:
        verdict: "greater", "smaller", "inconclusive" (no further pairs are worthwhile), or
            "continue".
        pairs: the number of pairs at the look that decided, or at the latest look.
        mean_difference: the mean difference. Its interval covers the centre of symmetric
            differences with probability 1 - alpha at every look, hence when stopped early, too.
        effect_size: the mean divided by the standard deviation of differences, corrected for
            small samples (Hedges' g). Its interval assumes normal differences; the looks share
            alpha.
    """

    verdict: str
    pairs: int
    mean_difference: Interval = Interval(math.nan, *UNBOUNDED)
    effect_size: Interval = Interval()


@component
class SequentialDesign:
    """A plan of looks at the differences of paired runs, with a stated error rate.

    Args:
        max_pairs: the largest number of pairs.
        looks: the numbers of pairs at which the differences are tested, the last is `max_pairs`.
        alpha: the probability of "greater" or "smaller", at any look, if the arms do not differ.
        spending_power: alpha * (pairs / max_pairs) ** spending_power may be used up to a look; 1
            stops early most often, 3 keeps most of alpha for the last look.
        smallest_effect: the mean difference of interest, in standard deviations of differences.
        min_power: a comparison is given up as inconclusive if a difference of `smallest_effect`
            would be shown at the last look with a lower probability than this, given the data.

    Raises:
        ConfigError: looks that do not increase to `max_pairs`, or too few pairs to be significant.

    >>> design = SequentialDesign()
    >>> differences = [0.3, 0.1, 0.2, 0.4, 0.3, 0.2, 0.1, 0.5]
    >>> design.decide(differences[:6]).verdict, design.decide(differences).verdict
    ('continue', 'greater')
    """

    max_pairs: PositiveInt = 16
    looks: tuple[PositiveInt, ...] = (4, 6, 8, 12, 16)
    alpha: OpenProbability = 0.05
    spending_power: PositiveFloat = 1.0
    smallest_effect: PositiveFloat = 1.0
    min_power: OpenProbability = 0.5

    def __post_init__(self) -> None:
        is_increasing = all(x < y for x, y in pairwise(self.looks))
        is_plan = is_increasing and self.looks[-1:] == (self.max_pairs,)
        check_field(self, "looks", is_plan, f"increasing, the last is max_pairs = {self.max_pairs}")
        needed = math.ceil(math.log2(2 / self.alpha))
        allowed = f"{needed} or more: fewer pairs cannot be significant at alpha = {self.alpha:.3g}"
        check_field(self, "max_pairs", self.max_pairs >= needed, allowed)

    @classmethod
    def between(cls, first: int, last: int) -> "SequentialDesign":
        """The design with up to five looks at equal distances.

        >>> SequentialDesign.between(8, 24).looks
        (8, 12, 16, 20, 24)
        """
        looks = {round(first + (last - first) * i / 4) for i in range(5)}
        return cls(max_pairs=last, looks=tuple(sorted(looks)))

    def shared_by(self, arms: int) -> "SequentialDesign":
        """The design for each of several arms: alpha bounds the error of all together."""
        return replace(self, alpha=self.alpha / max(1, arms))

    def spent_alpha(self, pairs: int) -> float:
        """The part of alpha that may be used up to a look."""
        return self.alpha * (pairs / self.max_pairs) ** self.spending_power

    def verdict(self, differences: Sequence[float]) -> tuple[str, int]:
        """The verdict on the differences, and the number of pairs at which it was reached.

        Later differences do not change a verdict, and only completed looks are tested.
        """
        x = _as_finite(differences)
        look = 0
        for look, is_rejected in self._tests(x):
            if is_rejected:
                return (GREATER if x[:look].sum() > 0 else SMALLER), look
            if look == self.max_pairs or self._is_futile(x[:look]):
                return INCONCLUSIVE, look
        return CONTINUE, look

    def decide(self, differences: Sequence[float]) -> Decision:
        """The verdict with the interval of the mean difference and the effect size.

        Args:
            differences: the differences of the pairs, in the planned order of the pairs; the order
                in which runs ended must not matter.

        Raises:
            ValueError: a difference is not finite.
        """
        verdict, pairs = self.verdict(differences)
        if not pairs:
            return Decision(verdict, pairs)
        x = _as_finite(differences)[:pairs]
        return Decision(verdict, pairs, self._mean_interval(x, verdict), self._effect_size(x))

    def _tests(self, x: np.ndarray) -> Iterator[tuple[int, bool]]:
        """For each completed look, its number of pairs and whether the test rejects.

        The statistic of the data is compared with those of all sign flips, of which the data is
        the first. At most the fraction `spent_alpha` of them exceeds a boundary up to a look; flips
        that tie with a boundary do not exceed it.
        """
        exceeded = np.zeros(1, dtype=bool)
        for look in (n for n in self.looks if n <= len(x)):
            statistics = _flipped_sums(x[:look])
            exceeded = exceeded.repeat(len(statistics) // len(exceeded))  # flips of further pairs
            remaining = np.where(exceeded, -1.0, statistics)
            allowed = int(self.spent_alpha(look) * len(statistics) + 1e-9) - exceeded.sum()
            index = len(statistics) - 1 - allowed
            boundary = np.partition(remaining, index)[index]
            yield look, bool(statistics[0] > boundary)
            exceeded |= remaining > boundary

    def _is_futile(self, x: np.ndarray) -> bool:
        """True if `smallest_effect` would be shown at the last look with low probability.

        Brownian approximation of the standardised sum, in the more favourable direction.
        """
        left = 1 - len(x) / self.max_pairs
        z = t_statistic(x) * math.sqrt(1 - left)
        drift = self.smallest_effect * math.sqrt(self.max_pairs) * left
        missing = stats.norm.isf(self.alpha / 2) - abs(z) - drift
        return bool(stats.norm.sf(missing / math.sqrt(left)) < self.min_power)

    def _mean_interval(self, x: np.ndarray, verdict: str) -> Interval:
        """The mean, and the centres that the test at this look does not reject."""
        mean = float(x.mean())

        def is_rejected(centre: float) -> bool:
            *_, (_, rejects) = self._tests(x - centre)
            return rejects

        width = float(np.ptp(x)) + abs(mean)
        if not is_rejected(mean - 2 * width - 1):  # even the largest statistic is not significant
            return Interval(mean, *UNBOUNDED)
        low = 0.0 if verdict == GREATER else float(x.min()) - width
        high = 0.0 if verdict == SMALLER else float(x.max()) + width
        return Interval(mean, *(_bisect(is_rejected, bound, mean) for bound in (low, high)))

    def _effect_size(self, x: np.ndarray) -> Interval:
        """The effect size; its interval has the part of alpha of this look."""
        earlier = max((look for look in self.looks if look < len(x)), default=0)
        return standardised_mean(x, self.spent_alpha(len(x)) - self.spent_alpha(earlier))


def _as_finite(differences: Sequence[float]) -> np.ndarray:
    x = np.asarray(differences, dtype=np.float64)
    if not np.isfinite(x).all():
        raise ValueError("A difference is not finite.")
    return x


def _flipped_sums(x: np.ndarray) -> np.ndarray:
    """The absolute sum of `x` under each flip of signs, as a fraction of the sum of magnitudes.

    The first sign is fixed, because a flip of all signs changes nothing. The first sum is that of
    the data; flips with equal signs of the first pairs are adjacent.
    """
    folded = np.bincount(np.arange(len(x)) % FREE_SIGNS, weights=x / (np.abs(x).sum() or 1.0))
    sums = folded[:1]
    for y in folded[1:]:
        sums = np.add.outer(sums, (y, -y)).ravel()
    return np.abs(sums).round(ROUND_DIGITS)


def _bisect(is_rejected: Callable[[float], bool], outer: float, inner: float) -> float:
    """The end of the accepted centres between a rejected and an accepted one."""
    for _ in range(BISECTIONS):
        middle = (outer + inner) / 2
        outer, inner = (middle, inner) if is_rejected(middle) else (outer, middle)
    return outer
