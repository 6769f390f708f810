"""Intuitor: self-certainty is the only reward. Zhao et al., 2025, arXiv:2505.19590."""

from grupo.algo.advantages import Center, ScaleByStd, chain
from grupo.algo.advantages.intrinsic import MeanSignal
from grupo.algo.losses import KL, Clip
from grupo.core.numbers import NonNegative, PositiveInt
from grupo.core.paper import Paper
from grupo.method import Method
from grupo.rollouts.samplers import GroupSampler

PAPER = Paper(
    title="Learning to Reason without External Rewards",
    use="No verifier exists, and the policy is more certain where it is correct.",
    tags=("unsupervised",),
    checked=("golden", "properties", "reference"),
)


def intuitor(
    group_size: PositiveInt = 7, clip_eps: NonNegative = 0.2, kl_coef: NonNegative = 0.005
) -> Method:
    """A = (u - mean(u)) / std(u), u = 1 / L sum_t KL(U, pi(.|s_t)), U uniform over the vocabulary.

    KL(U, pi) = -1/|V| sum_v log(|V| pi(v)), which grows with the certainty of the policy.

    Args:
        group_size: rollouts per task (paper: 7).
        clip_eps: ratios are clipped to [1 - clip_eps, 1 + clip_eps].
        kl_coef: weight of the KL divergence from the reference policy (paper: 0.005).
    """
    # The released code omits log |V|, which cancels in A. u is measured on the current policy: a
    # fixed judge would be exploited.
    return Method(
        sampler=GroupSampler(group_size),
        advantage=chain(MeanSignal("self_certainty"), Center(), ScaleByStd()),
        loss=Clip(clip_eps, clip_eps) + kl_coef * KL(),
    )
