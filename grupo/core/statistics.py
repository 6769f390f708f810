"""What several runs allow to be said: intervals, differences, corrections.

Values come by task set and then by seed. A mean is the mean of the task sets' means; bootstraps
draw seeds anew within each task set (stratified). Agarwal et al., 2021, arXiv:2108.13264.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy import stats

CONFIDENCE_LEVEL, RESAMPLES = 0.95, 9999

Strata = Sequence[Sequence[float]]  # of each task set, the values of its seeds


@dataclass(frozen=True)
class Interval:
    """A number and where it lies in 95 % of the resamples; NaN to NaN where nobody can say."""

    value: float = math.nan
    low: float = math.nan
    high: float = math.nan


def stratified_mean(strata: Strata) -> Interval:
    """The mean over seeds.

    Of three seeds the interval is from the lowest to the highest: all three draws are the lowest in
    1 of 27 resamples, which is more than 2.5 %.

    >>> stratified_mean([[0.25, 0.5, 0.75]])
    Interval(value=0.5, low=0.25, high=0.75)
    """
    value, (low, high) = _mean(*map(np.asarray, strata)), bootstrap_interval(strata)
    return Interval(float(value), float(low), float(high))


def student_t_mean(values: Sequence[float]) -> Interval:
    """The mean and Student's interval of it, if values are normal.

    >>> one = student_t_mean([1.0, 2.0, 3.0])
    >>> one.value, round(one.high - 2, 3)  # 4.303 of t x 1 of spread / sqrt(3)
    (2.0, 2.484)
    """
    x = np.asarray(values, dtype=np.float64)
    reach = stats.t.ppf((1 + CONFIDENCE_LEVEL) / 2, len(x) - 1) * x.std(ddof=1) / math.sqrt(len(x))
    return Interval(*(float(x.mean() + off) for off in (0.0, -reach, reach)))


def bootstrap_interval(
    strata: Sequence[Sequence[float] | np.ndarray],
) -> tuple[np.ndarray, np.ndarray]:
    """The interval of the mean over the last axis, for every place before it."""
    return _bootstrap(strata, _mean)


def probability_of_improvement(scores: Strata, baseline_scores: Strata) -> Interval:
    """Chance that a run of ours is above one of theirs, a draw being half of that.

    >>> probability_of_improvement([[1.0, 3.0]], [[1.0, 2.0]]).value  # 1 draw and 2 wins in 4
    0.625
    """
    both = (*map(np.asarray, scores), *map(np.asarray, baseline_scores))
    low, high = _bootstrap(both, _win_rate)
    return Interval(float(_win_rate(*both)), float(low), float(high))


def sign_flip_p_value(differences: Sequence[float]) -> float:
    """How often a mean as far from 0 arises when each pair's sign is a coin's: two-sided p.

    Exact up to 13 pairs. It can never be below 2 / 2^pairs.

    >>> sign_flip_p_value([0.1, 0.2, 0.3])
    0.25
    """
    if len(differences) < 2:
        return 1.0 if len(differences) else math.nan
    x = np.asarray(differences, dtype=np.float64)
    found = stats.permutation_test(
        (x,), np.mean, permutation_type="samples", n_resamples=RESAMPLES, rng=0
    )
    return float(found.pvalue)


def paired_t_p_value(differences: Sequence[float]) -> float:
    """Student's t of paired differences, if they are normal: two-sided p.

    NaN where they have no spread, and of two: by chance these are nearly alike too often.
    """
    x = np.asarray(differences, dtype=np.float64)
    if len(x) < 3 or np.ptp(x) <= 1e-12 * np.abs(x).max():
        return math.nan
    _, p = stats.ttest_1samp(x, 0.0)
    return float(np.asarray(p))


def holm_correction(p_values: Sequence[float]) -> list[float]:
    """p corrected for being one of many: the k-th smallest of m times m - k + 1, never falling.

    Holm, 1979. What is NaN was not tested and stays so.

    >>> holm_correction([0.01, 0.04, 0.03])  # 0.03 = 3 x 0.01; 2 x 0.03 = 0.06; 1 x 0.04 is less than that
    [0.03, 0.06, 0.06]
    """
    tested = sorted((p, i) for i, p in enumerate(p_values) if not math.isnan(p))
    corrected, least = list(p_values), 0.0
    for rank, (p, i) in enumerate(tested):
        least = max(least, min(1.0, (len(tested) - rank) * p))
        corrected[i] = least
    return corrected


def smallest_corrected_p(pairs: int, comparisons: int) -> float:
    """What Holm makes at best of the smallest p that signs of so many pairs can have."""
    return min(1.0, comparisons * 2.0 ** (1 - pairs))


def pairs_needed(comparisons: int, level: float = 1 - CONFIDENCE_LEVEL) -> int:
    """How many pairs it takes for that to be at most `level`.

    >>> pairs_needed(1), pairs_needed(15)  # 2 / 2^6 = 0.03; 15 x 2 / 2^10 = 0.03
    (6, 10)
    """
    return math.ceil(math.log2(2 * comparisons / level))


def _bootstrap(samples: Sequence, statistic) -> tuple[np.ndarray, np.ndarray]:
    arrays = [np.asarray(x, dtype=np.float64) for x in samples]
    if not arrays or min(x.shape[-1] for x in arrays) < 2:
        nothing = np.full(arrays[0].shape[:-1] if arrays else (), math.nan)
        return nothing, nothing
    found = stats.bootstrap(
        arrays,
        statistic,
        n_resamples=RESAMPLES,
        vectorized=True,
        axis=-1,
        confidence_level=CONFIDENCE_LEVEL,
        method="percentile",
        rng=0,
    ).confidence_interval
    return found.low, found.high


def _mean(*samples: np.ndarray, axis: int = -1) -> np.ndarray:
    if not samples or not all(x.shape[axis] for x in samples):
        return np.asarray(math.nan)
    return np.mean([x.mean(axis) for x in samples], axis=0)


def _win_rate(*both: np.ndarray, axis: int = -1) -> np.ndarray:
    """The share of pairs won, first half of the samples against the second."""
    half = len(both) // 2
    shares = [_win_rate_of_pair(x, y) for x, y in zip(both[:half], both[half:], strict=True)]
    return np.mean(shares, axis=0)


def _win_rate_of_pair(x: np.ndarray, y: np.ndarray) -> np.ndarray:
    ours, theirs = x[..., :, None], y[..., None, :]
    return ((ours > theirs) + 0.5 * (ours == theirs)).mean((-1, -2))
