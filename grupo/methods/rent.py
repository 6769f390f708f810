"""RENT: negative entropy is the only reward. Prabhudesai et al., 2025, arXiv:2505.22660."""

from grupo.algo.advantages import Center, ScaleByStd, chain
from grupo.algo.advantages.intrinsic import MeanSignal
from grupo.algo.losses import Clip
from grupo.core.numbers import NonNegative, PositiveInt
from grupo.core.paper import Paper
from grupo.method import Method
from grupo.rollouts.samplers import GroupSampler

PAPER = Paper(
    title="Maximizing Confidence Alone Improves Reasoning",
    use="No verifier exists, and confident answers are correct more often.",
    tags=("unsupervised", "entropy"),
    checked=("golden", "properties"),
)


def rent(group_size: PositiveInt = 5, clip_eps: NonNegative = 0.2) -> Method:
    """A = (r - mean(r)) / std(r), r = -1 / L sum_t H(pi(.|s_t)), the entropy when sampled.

    Args:
        group_size: rollouts per task (from a public summary).
        clip_eps: ratios are clipped to [1 - clip_eps, 1 + clip_eps] (our choice).
    """
    # The paper also finds that the last tokens of an answer are most informative; here all count.
    return Method(
        sampler=GroupSampler(group_size),
        advantage=chain(MeanSignal("entropy", -1.0), Center(), ScaleByStd()),
        loss=Clip(clip_eps, clip_eps),
    )
