"""The gain of a perfect use of a method's mechanism in the environment of its claim.

A claim may be undecided because the environment leaves its mechanism nothing to gain. The oracle
use has the place of the mechanism and knows the environment.
"""

from collections.abc import Mapping
from dataclasses import replace

from grupo.evidence.claims.claim import Arm, Claim
from grupo.evidence.claims.comparisons import ArmComparison, Verdict, comparison_of

# credit to turns or tokens, by comparison, by prefixes or by a value function: at best it separates
# the actions of an optimal policy from the others, as the oracle of the environment does
CREDIT = ("gigpo", "salt", "tempo", "optimal_token_baseline", "vc_ppo")
ORACLE_USES: Mapping[str, Arm] = dict.fromkeys(CREDIT, Arm("oracle"))


def oracle_use_of(claim: Claim) -> ArmComparison | None:
    """The oracle use against the baseline of the claim; None where none is defined."""
    arm = ORACLE_USES.get(claim.key)
    return replace(comparison_of(claim), arm=arm, margin=0.0) if arm else None


def verdict_with_oracle(verdict: Verdict, oracle_use: Verdict) -> Verdict:
    """The verdict on a claim, "nothing to gain" if even the oracle use does not win.

    Args:
        verdict: Verdict on the claim; one in either direction stays as it is.
        oracle_use: Verdict of the oracle use against the baseline.

    >>> str(verdict_with_oracle(Verdict.UNDECIDED, Verdict.UNDECIDED))
    'nothing to gain'
    """
    loses = oracle_use in (Verdict.UNDECIDED, Verdict.DOES_NOT_HOLD)
    return Verdict.NOTHING_TO_GAIN if loses and verdict is Verdict.UNDECIDED else verdict
