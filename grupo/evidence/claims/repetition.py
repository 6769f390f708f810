"""The repetition of a decided claim with seeds that no earlier run of it had.

The first comparison of some claims is decided by chance. A claim stays decided if sixteen further
pairs, all of them examined once, differ in the same direction: an exact one-sided sign-flip test.
"""

from dataclasses import replace

from grupo.compare.sequential_design import SequentialDesign
from grupo.evidence.claims.comparisons import DESIGN, ArmComparison, Verdict

ALPHA = 0.05  # probability that a repetition has the first verdict's sign if no arm differs
# both directions are tested, so each has half of the design's rate
REPETITION_DESIGN = SequentialDesign(max_pairs=16, looks=(16,), alpha=2 * ALPHA)
# the verdict on a claim whose repetition has not been run, by that of its first comparison
DECIDED_ONCE = {
    Verdict.HOLDS: Verdict.HOLDS_ONCE,
    Verdict.DOES_NOT_HOLD: Verdict.DOES_NOT_HOLD_ONCE,
}


def repetition_of(comparison: ArmComparison) -> ArmComparison:
    """The same comparison with the seeds after those of its own design."""
    first_seed = comparison.first_seed + comparison.design.max_pairs
    return replace(comparison, design=REPETITION_DESIGN, first_seed=first_seed)


def verdict_after(first: Verdict, repeated: Verdict) -> Verdict:
    """The verdict on a claim after its repetition.

    Args:
        first: Verdict of the first comparison; one that is not decided stays as it is.
        repeated: Verdict of the repetition.

    >>> str(verdict_after(Verdict.HOLDS, Verdict.DOES_NOT_HOLD))
    'not confirmed'
    """
    if first not in DECIDED_ONCE:
        return first
    if repeated is Verdict.PENDING:
        return DECIDED_ONCE[first]
    return first if repeated is first else Verdict.NOT_CONFIRMED


def expected_confirmed(repeated: int, decided: int, tested: int) -> float:
    """Number of repeated claims that are expected to be confirmed, given the error rates.

    The first comparisons decide a fraction `DESIGN.alpha` of the tested claims by chance, of which
    `ALPHA` are confirmed by chance; every other decided claim is counted as confirmed.

    Args:
        repeated: Claims that were repeated.
        decided: Claims that the first comparison decided.
        tested: Claims with a first comparison.

    >>> round(expected_confirmed(repeated=10, decided=10, tested=40), 2)  # 8 + 2 x 0.05
    8.1
    """
    chance = min(1.0, DESIGN.alpha * tested / decided) if decided else 0.0
    return repeated * (1 - chance * (1 - ALPHA))
