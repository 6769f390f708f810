"""Unlikeliness reward: the likely right answer is worth less. He et al., 2025, arXiv:2506.02355."""

from torch import Tensor

from grupo.algo.advantages import Center, ScaleByStd, chain
from grupo.algo.advantages.intrinsic import MeanSignal
from grupo.algo.losses import KL, Clip
from grupo.algo.minibatches import Updates
from grupo.core import group_ops
from grupo.core.batch import Batch
from grupo.core.component import component
from grupo.core.paper import Paper
from grupo.method import Method
from grupo.rollouts.samplers import GroupSampler

PAPER = Paper(
    title="Rewarding the Unlikely: Lifting GRPO Beyond Distribution Sharpening",
    use="Many attempts at test time: pass@n falls while pass@1 rises.",
    checked=("golden", "laws", "reference", "run"),
    catalogue=("unlikeliness-reward",),
)


@component
class UnlikelinessReward:
    """r (1 - share rank / G), rank 0 for the least likely of the group.

    Likely is the mean log-probability of a rollout's actions when sampled; those who are equal
    share their mean rank.
    """

    rank_coef: float

    def __call__(self, x: Tensor, batch: Batch) -> Tensor:
        s = MeanSignal()(x, batch)
        return x * (
            1 - self.rank_coef * group_ops.rank(s, batch.group) / group_ops.count(x, batch.group)
        )


def unlikeliness(
    group_size: int = 32,
    rank_coef: float = 0.25,
    clip_eps: float = 0.2,
    kl_coef: float = 0.1,
    epochs: int = 2,
) -> Method:
    """GRPO of r (1 - `rank_coef` rank / G): equally right answers differ, and all-right groups teach.

    `epochs` is the paper's other lever: later passes reach the unlikely, the likely being clipped.
    """
    # Rank, share, KL and epochs as in the authors' code. Its ranks go by mean log-probability,
    # the paper's by the probability of the whole answer; it breaks ties by order. We share them.
    # Their bound on the gradient's norm, above which a step is skipped, belongs to the recipe.
    return Method(
        sampler=GroupSampler(group_size),
        advantage=chain(UnlikelinessReward(rank_coef), Center(), ScaleByStd()),
        loss=Clip(clip_eps, clip_eps) + kl_coef * KL(),
        updates=Updates(epochs),
    )
