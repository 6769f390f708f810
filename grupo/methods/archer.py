"""Archer: wide bounds at forks, a KL on what is known. Wang et al., 2025, arXiv:2507.15778."""

from grupo.algo.aggregation import token_mean
from grupo.algo.filters import informative
from grupo.algo.losses import DualConstraint
from grupo.core.paper import Paper
from grupo.method import Method
from grupo.rollouts.samplers import Independent

PAPER = Paper(
    title="Stabilizing Knowledge, Promoting Reasoning: Dual-Token Constraints for RLVR",
    use="Reasoning should move while facts and formats, the certain tokens, stay where they are.",
    checked=("golden", "laws", "reference", "run"),
)


def archer(
    group: int = 16,
    quantile: float = 0.8,
    narrow: float = 0.2,
    wide: float = 0.5,
    kl: float = 0.001,
    kl_at_forks: float = 0.0,
) -> Method:
    """PPO's surrogate with clip `wide` at tokens of high entropy, `narrow` elsewhere, and k3.

    High is at or above the `quantile` of the answer's own entropies. k3 to the reference counts
    `kl_at_forks` at those tokens and `kl` at all others; token mean over informative groups.
    """
    # quantile, the two clips and no KL at forks are those of the released scripts; kl 0.001 is the
    # paper's as we remember it. The entropies are the current policy's, without gradient.
    # In the release high is strictly above the quantile, and the mean of the KL is over the other
    # tokens alone.
    return Method(
        sample=Independent(group),
        curate=informative,
        loss=DualConstraint(narrow, wide, kl, kl_at_forks, quantile),
        weigh=token_mean,
    )
