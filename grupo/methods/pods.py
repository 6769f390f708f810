"""PODS: sample many, learn from the most unlike. Xu et al., 2025, arXiv:2504.13818."""

from grupo.algo.filters import KeepMaxVariance
from grupo.algo.losses import Clip
from grupo.core.paper import Paper
from grupo.method import Method
from grupo.rollouts.samplers import GroupSampler

PAPER = Paper(
    title="Not All Rollouts are Useful: Down-Sampling Rollouts in LLM Reinforcement Learning",
    use="Rollouts are cheap to sample in parallel, and updates are what takes memory and time.",
    checked=("golden", "laws", "run"),
)


def pods(group_size: int = 64, num_kept: int = 16, clip_eps: float = 0.2) -> Method:
    """Of `group_size` rollouts the `num_kept` whose rewards have the greatest variance; then GRPO.

    They are the k highest and the `num_kept` - k lowest for some k (theorem 1); A = (r - mean(r)) /
    std(r) with mean and std of those that are kept.
    """
    # 64 and 16 are from memory, not seen in the paper. Clip and no KL are our choice: it changes
    # neither.
    return Method(
        sampler=GroupSampler(group_size),
        filter=KeepMaxVariance(num_kept),
        loss=Clip(clip_eps, clip_eps),
    )
