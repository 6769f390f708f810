"""RENT: negative entropy is the only reward. Prabhudesai et al., 2025, arXiv:2505.22660."""

from grupo.algo.advantages import Center, ScaleByStd, chain
from grupo.algo.advantages.intrinsic import MeanSignal
from grupo.algo.losses import Clip
from grupo.core.paper import Paper
from grupo.method import Method
from grupo.rollouts.samplers import GroupSampler

PAPER = Paper(
    title="Maximizing Confidence Alone Improves Reasoning",
    use="There is nothing to judge answers by, and sure answers are right more often.",
    checked=("golden", "laws"),
)


def rent(group_size: int = 5, clip_eps: float = 0.2) -> Method:
    """A = (r - mean(r)) / std(r), r = -1 / L sum_t H(pi(.|s_t)), the entropy when sampled."""
    # 5 rollouts are those of a public summary; clip and no KL are our choice. The paper also finds
    # that the last tokens of an answer tell most; all of them count here.
    return Method(
        sampler=GroupSampler(group_size),
        advantage=chain(MeanSignal("entropy", -1.0), Center(), ScaleByStd()),
        loss=Clip(clip_eps, clip_eps),
    )
