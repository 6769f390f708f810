"""Dual-clip: what a bad action costs has a ceiling. Ye et al., 2019, arXiv:1912.09729."""

from grupo.algo.losses import Clip
from grupo.algo.ratios import CappedRatio
from grupo.core.paper import Paper
from grupo.method import Method
from grupo.rollouts.samplers import GroupSampler

PAPER = Paper(
    title="Mastering Complex Control in MOBA Games with Deep Reinforcement Learning",
    use="Rollouts are old, and bad tokens that became likelier make the loss explode.",
    trl="delta=3.0 (two-sided clipping)",
    verl="the vanilla loss: clip_ratio_c=3.0, its default, so that every GRPO there is this",
    checked=("golden", "laws", "reference", "run"),
)


def dual_clip(group_size: int = 8, clip_eps: float = 0.2, dual_clip: float = 3.0) -> Method:
    """-max(min(r A, clip(r, 1 - `clip_eps`, 1 + `clip_eps`) A), `dual_clip` A) where A < 0, PPO's clip elsewhere.

    Which is PPO's clip of min(r, `dual_clip`): where A > 0 the cap lies above 1 + `clip_eps`. The paper's
    equation with its c = 3, as we remember both; A = (r - mean(r)) / std(r) and the mean over
    answers are GRPO's.
    """
    return Method(
        sampler=GroupSampler(group_size), loss=Clip(clip_eps, clip_eps, CappedRatio(dual_clip))
    )
