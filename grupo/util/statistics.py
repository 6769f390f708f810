"""Statistics of several runs: confidence intervals, differences, corrections.

Values are given by task set, then by seed. A mean is the mean of the task sets' means; bootstraps
resample seeds within each task set (stratified). Agarwal et al., 2021, arXiv:2108.13264.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy import special, stats

CONFIDENCE_LEVEL = 0.95
RESAMPLES = 9999

Strata = Sequence[Sequence[float]]  # for each task set, the values of its seeds


@dataclass(frozen=True)
class Interval:
    """A value and its 95 % interval; the bounds are NaN where none can be given."""

    value: float = math.nan
    low: float = math.nan
    high: float = math.nan


def stratified_mean(strata: Strata) -> Interval:
    """The mean over task sets and seeds, with its bootstrap interval.

    Of three seeds the interval is their range: all three draws are the lowest in 1 of 27
    resamples, which is more than 2.5 %.

    >>> stratified_mean([[0.25, 0.5, 0.75]])
    Interval(value=0.5, low=0.25, high=0.75)
    """
    value = _mean(*map(np.asarray, strata))
    low, high = bootstrap_interval(strata)
    return Interval(float(value), float(low), float(high))


def bootstrap_mean(values: Sequence[float] | np.ndarray) -> Interval:
    """The mean with its bootstrap interval over the values, such as one per task."""
    return stratified_mean([[float(value) for value in values]])


def student_t_mean(values: Sequence[float]) -> Interval:
    """The mean with Student's t interval, which assumes normal values.

    >>> found = student_t_mean([1.0, 2.0, 3.0])
    >>> found.value, round(found.high - 2, 3)  # t = 4.303, times std 1 / sqrt(3)
    (2.0, 2.484)
    """
    x = np.asarray(values, dtype=np.float64)
    t = stats.t.ppf((1 + CONFIDENCE_LEVEL) / 2, len(x) - 1)
    half_width = t * x.std(ddof=1) / math.sqrt(len(x))
    return Interval(*(float(x.mean() + offset) for offset in (0.0, -half_width, half_width)))


def bootstrap_interval(
    strata: Sequence[Sequence[float] | np.ndarray],
) -> tuple[np.ndarray, np.ndarray]:
    """Bootstrap interval of the mean over the last axis, for each entry of the axes before it."""
    return _bootstrap(strata, _mean)


def probability_of_improvement(scores: Strata, baseline_scores: Strata) -> Interval:
    """Probability that a run scores above a run of the baseline; a tie counts as half.

    >>> probability_of_improvement([[1.0, 3.0]], [[1.0, 2.0]]).value  # 1 tie and 2 wins of 4
    0.625
    """
    samples = (*map(np.asarray, scores), *map(np.asarray, baseline_scores))
    low, high = _bootstrap(samples, _win_rate)
    return Interval(float(_win_rate(*samples)), float(low), float(high))


def standardised_mean(values: Sequence[float] | np.ndarray, error: float) -> Interval:
    """The mean in standard deviations, corrected for small samples: Hedges' g.

    The interval misses the true effect with probability `error` if values are normal (noncentral
    t). Without spread all are NaN.

    >>> found = standardised_mean([1.0, 2.0, 3.0], 0.05)  # 2 / 1 x (1 - 3 / 7)
    >>> round(found.value, 4), round(found.low, 2), round(found.high, 2)
    (1.1429, -0.14, 4.11)
    """
    count = len(values)
    t = t_statistic(values)
    if count < 2 or not math.isfinite(t):
        return Interval()
    bounds = special.nctdtrinc(count - 1, (1 - error / 2, error / 2), t) / math.sqrt(count)
    correction = 1 - 3 / (4 * (count - 1) - 1)
    return Interval(correction * t / math.sqrt(count), *map(float, bounds))


def t_statistic(values: Sequence[float] | np.ndarray) -> float:
    """Student's t of the mean; without spread it is 0 or infinite.

    >>> t_statistic([1.0, 1.0]), t_statistic([0.0, 0.0])
    (inf, 0.0)
    """
    x = np.asarray(values, dtype=np.float64)
    mean = float(x.mean()) if len(x) else 0.0
    spread = float(x.std(ddof=1)) if len(x) > 1 else 0.0
    if spread <= 1e-12 * abs(mean):
        return math.copysign(math.inf, mean) if mean else 0.0
    return mean / spread * math.sqrt(len(x))


def sign_flip_p_value(differences: Sequence[float]) -> float:
    """Two-sided p of a mean this far from 0 if each pair's sign were random.

    Exact up to 13 pairs. It is never below 2 / 2^pairs.

    >>> sign_flip_p_value([0.1, 0.2, 0.3])
    0.25
    """
    if len(differences) < 2:
        return 1.0 if len(differences) else math.nan
    x = np.asarray(differences, dtype=np.float64)
    test = stats.permutation_test(
        (x,), np.mean, permutation_type="samples", n_resamples=RESAMPLES, rng=0
    )
    return float(test.pvalue)


def paired_t_p_value(differences: Sequence[float]) -> float:
    """Two-sided p of Student's paired t test, which assumes normal differences.

    NaN for differences without spread, and for fewer than three: two are too often nearly equal
    by chance.
    """
    x = np.asarray(differences, dtype=np.float64)
    if len(x) < 3 or np.ptp(x) <= 1e-12 * np.abs(x).max():
        return math.nan
    _, p = stats.ttest_1samp(x, 0.0)
    return float(np.asarray(p))


def holm_correction(p_values: Sequence[float]) -> list[float]:
    """p values corrected for multiple comparisons. Holm, 1979.

    The k-th smallest of m is multiplied by m - k + 1; the results never fall. NaN was not tested
    and stays NaN.

    >>> holm_correction([0.01, 0.04, 0.03])  # 3 x 0.01; 2 x 0.03; max(1 x 0.04, 0.06)
    [0.03, 0.06, 0.06]
    """
    tested = sorted((p, i) for i, p in enumerate(p_values) if not math.isnan(p))
    corrected = list(p_values)
    largest = 0.0
    for rank, (p, i) in enumerate(tested):
        largest = max(largest, min(1.0, (len(tested) - rank) * p))
        corrected[i] = largest
    return corrected


def smallest_corrected_p(pairs: int, comparisons: int) -> float:
    """The smallest p that a sign-flip test of `pairs` pairs can have after Holm's correction."""
    return min(1.0, comparisons * 2.0 ** (1 - pairs))


def pairs_needed(comparisons: int, level: float = 1 - CONFIDENCE_LEVEL) -> int:
    """Pairs needed for `smallest_corrected_p` to be at most `level`.

    >>> pairs_needed(1), pairs_needed(15)  # 2 / 2^6 = 0.03; 15 x 2 / 2^10 = 0.03
    (6, 10)
    """
    return math.ceil(math.log2(2 * comparisons / level))


def _bootstrap(samples: Sequence, statistic) -> tuple[np.ndarray, np.ndarray]:
    arrays = [np.asarray(x, dtype=np.float64) for x in samples]
    if not arrays or min(x.shape[-1] for x in arrays) < 2:
        undefined = np.full(arrays[0].shape[:-1] if arrays else (), math.nan)
        return undefined, undefined
    interval = stats.bootstrap(
        arrays,
        statistic,
        n_resamples=RESAMPLES,
        vectorized=True,
        axis=-1,
        confidence_level=CONFIDENCE_LEVEL,
        method="percentile",
        rng=0,
    ).confidence_interval
    return interval.low, interval.high


def _mean(*samples: np.ndarray, axis: int = -1) -> np.ndarray:
    if not samples or not all(x.shape[axis] for x in samples):
        return np.asarray(math.nan)
    return np.mean([x.mean(axis) for x in samples], axis=0)


def _win_rate(*samples: np.ndarray, axis: int = -1) -> np.ndarray:
    """Fraction of pairs won by the first half of the samples against the second half."""
    half = len(samples) // 2
    rates = [_win_rate_of_pair(x, y) for x, y in zip(samples[:half], samples[half:], strict=True)]
    return np.mean(rates, axis=0)


def _win_rate_of_pair(x: np.ndarray, y: np.ndarray) -> np.ndarray:
    left = x[..., :, None]
    right = y[..., None, :]
    return ((left > right) + 0.5 * (left == right)).mean((-1, -2))
