"""Intuitor: self-certainty is the only reward. Zhao et al., 2025, arXiv:2505.19590."""

from grupo.algo.advantages import Center, ScaleByStd, chain
from grupo.algo.advantages.intrinsic import MeanSignal
from grupo.algo.losses import KL, Clip
from grupo.core.paper import Paper
from grupo.method import Method
from grupo.rollouts.samplers import GroupSampler

PAPER = Paper(
    title="Learning to Reason without External Rewards",
    use="There is nothing to judge answers by, and a model is surer where it is right.",
    checked=("golden", "laws", "reference"),
)


def intuitor(group_size: int = 7, clip_eps: float = 0.2, kl_coef: float = 0.005) -> Method:
    """A = (u - mean(u)) / std(u), u = 1 / L sum_t KL(U, pi(.|s_t)), U uniform over the vocabulary.

    KL(U, pi) = -1/|V| sum_v log(|V| pi(v)): it grows as the policy is surer.
    """
    # 7 answers and `kl_coef` are the paper's. The released code leaves out log |V|, which cancels in A.
    # u is of the policy that samples, measured at each step: a judge that stands still is gamed.
    return Method(
        sampler=GroupSampler(group_size),
        advantage=chain(MeanSignal("self_certainty"), Center(), ScaleByStd()),
        loss=Clip(clip_eps, clip_eps) + kl_coef * KL(),
    )
