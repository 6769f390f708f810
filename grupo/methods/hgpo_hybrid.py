"""Hybrid GPO: whether to think, and how well, apart. Jiang et al., 2025, arXiv:2505.14631."""

from torch import Tensor

from grupo.algo.advantages import ByRewardTerm, Center, ScaleByStd, chain
from grupo.algo.advantages.token_table import token_index
from grupo.algo.losses import KL, Clip
from grupo.core import group_ops
from grupo.core.batch import Batch
from grupo.core.component import component
from grupo.core.paper import Paper
from grupo.method import Method
from grupo.rollouts.samplers import GroupSampler

PAPER = Paper(
    title="Think Only When You Need with Large Hybrid-Reasoning Models",
    use="The policy opens with a tag for thinking or not, and shall learn when either pays.",
    checked=("golden", "laws", "run"),
    catalogue=("hgpo-lhrm",),
)
ZSCORE = chain(Center(), ScaleByStd())


@component
class HybridModeAdvantage:
    """norm(r_intra) + alpha norm(r_inter) [the action is the rollout's first, the mode's tag].

    r_intra is 1 for the best of a mode, shared by those that are equal; r_inter is 1 for who is in
    the better mode, thinking (part `mode` above 0.5) if its mean reward exceeds the other's by more
    than `margin`.
    """

    mode_coef: float
    margin: float
    required_reward_terms = ("mode",)

    def __call__(self, x: Tensor, batch: Batch) -> Tensor:
        thinks = batch.reward_terms["mode"] > 0.5
        best = (x == group_ops.max(x, ByRewardTerm("mode")(batch))).to(x)
        intra = best / group_ops.sum(best, ByRewardTerm("mode")(batch))
        inter = (thinks == self._thinking_wins(x, thinks, batch.group)).to(x)
        tag = self.mode_coef * ZSCORE(inter, batch)[batch.rollout, None] * (token_index(batch) == 0)
        return ZSCORE(intra, batch)[batch.rollout, None] + tag

    def _thinking_wins(self, x: Tensor, thinking: Tensor, group: Tensor) -> Tensor:
        other = group_ops.mean_where(~thinking, x, group)
        return group_ops.mean_where(thinking, x, group) > other + self.margin


def hgpo_hybrid(group_size: int = 4, mode_coef: float = 1.0, margin: float = 0.2) -> Method:
    """A = norm(best of its mode) + `mode_coef` norm(in the better mode) on the mode's tag alone.

    Half of a task's rollouts are forced into either mode by the environment, which labels them.
    """
    # Eq. 8 to 13; clip 0.5 and KL 0.001 of the paper. The first best wins there; equals share here.
    # An even race goes to the short mode: our choice. The paper renews the reference now and then.
    loss = Clip(0.5, 0.5) + 0.001 * KL()
    return Method(
        sampler=GroupSampler(group_size),
        advantage=HybridModeAdvantage(mode_coef, margin),
        loss=loss,
    )
