"""Archer: wide bounds at forks, a KL on what is known. Wang et al., 2025, arXiv:2507.15778."""

from grupo.algo.aggregation import token_mean
from grupo.algo.filters import keep_nonzero_std
from grupo.algo.losses import DualConstraint
from grupo.core.paper import Paper
from grupo.method import Method
from grupo.rollouts.samplers import GroupSampler

PAPER = Paper(
    title="Stabilizing Knowledge, Promoting Reasoning: Dual-Token Constraints for RLVR",
    use="Reasoning should move while facts and formats, the certain tokens, stay where they are.",
    checked=("golden", "laws", "reference", "run"),
)


def archer(
    group_size: int = 16,
    entropy_quantile: float = 0.8,
    clip_eps: float = 0.2,
    high_entropy_clip_eps: float = 0.5,
    kl_coef: float = 0.001,
    high_entropy_kl_coef: float = 0.0,
) -> Method:
    """PPO's surrogate with clip `high_entropy_clip_eps` at tokens of high entropy, `clip_eps` elsewhere, and k3.

    High is at or above the `entropy_quantile` of the answer's own entropies. k3 to the reference counts
    `high_entropy_kl_coef` at those tokens and `kl_coef` at all others; token mean over informative groups.
    """
    # quantile, the two clips and no KL at forks are those of the released scripts; kl 0.001 is the
    # paper's as we remember it. The entropies are the current policy's, without gradient.
    # In the release high is strictly above the quantile, and the mean of the KL is over the other
    # tokens alone.
    return Method(
        sampler=GroupSampler(group_size),
        filter=keep_nonzero_std,
        loss=DualConstraint(
            clip_eps, high_entropy_clip_eps, kl_coef, high_entropy_kl_coef, entropy_quantile
        ),
        aggregation=token_mean,
    )
