"""CPPO: learn only from rollouts of great advantage. Lin et al., 2025, arXiv:2503.22342."""

from torch import Tensor

from grupo.algo.losses import KL, Clip
from grupo.core.batch import Batch, PerAction
from grupo.core.component import component
from grupo.core.paper import Paper
from grupo.method import Method
from grupo.rollouts.samplers import GroupSampler

PAPER = Paper(
    title="CPPO: Accelerating the Training of Group Relative Policy Optimization-Based"
    " Reasoning Models",
    use="Most rollouts of a group say the same, and the few that differ should decide.",
    checked=("golden", "laws", "reference", "run"),
)


@component
class TopAdvantageMean:
    """1 / (K L_i) for every action of a group's k rollouts of greatest |A|, K of them in all.

    k = floor(G (1 - pruned)), at least 1. Those tied for the last places share them.
    """

    prune_fraction: float

    def __call__(self, batch: Batch) -> PerAction:
        acted = batch.mask.sum(1)
        size = (batch.advantage.double() * batch.mask).abs().sum(1) / acted.clamp(min=1)
        kept = self._kept_fraction(size, acted > 0, batch)
        share = kept / kept.sum().clamp(min=1e-12) / acted.clamp(min=1)
        return (share[:, None] * batch.mask).to(batch.old_logp)

    def _kept_fraction(self, abs_advantage: Tensor, has_actions: Tensor, batch: Batch) -> Tensor:
        """How much of each row is kept, 0..1."""
        same = (batch.row_group[:, None] == batch.row_group) & has_actions & has_actions[:, None]
        tied = same & ((abs_advantage - abs_advantage[:, None]).abs() <= 1e-9)
        above = (same & (abs_advantage > abs_advantage[:, None]) & ~tied).sum(1)
        k = (same.sum(1) * (1 - self.prune_fraction) + 1e-9).floor().clamp(min=1)
        return ((k - above) / tied.sum(1).clamp(min=1)).clamp(0, 1) * has_actions


def cppo(
    group_size: int = 16, prune_fraction: float = 0.5, clip_eps: float = 0.2, kl_coef: float = 0.04
) -> Method:
    """GRPO's A over the whole group; the loss is a mean over the (1 - `prune_fraction`) G of greatest |A|.

    loss = 1 / k sum over the kept of 1 / L_i sum_t -min(R A, clip(R) A) + `kl_coef` k3.
    """
    # `prune_fraction` is 1/2 to 15/16 of 16 in its runs. Of several rows of a rollout each counts as one.
    # What is pruned is still evaluated here, at weight 0: the saving is left to `pods`. The release
    # prunes over the rows of a device, not of a group, and takes the mean over tokens.
    return Method(
        sampler=GroupSampler(group_size),
        loss=Clip(clip_eps, clip_eps) + kl_coef * KL(),
        aggregation=TopAdvantageMean(prune_fraction),
    )
