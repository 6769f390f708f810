"""Hybrid GPO: separate credit for mode and answer. Jiang et al., 2025, arXiv:2505.14631."""

from torch import Tensor

from grupo.algo.advantages import ByRewardTerm, Center, ScaleByStd, chain
from grupo.algo.advantages.token_table import token_index
from grupo.algo.losses import KL, Clip
from grupo.core import group_ops
from grupo.core.batch import Batch
from grupo.core.component import component
from grupo.core.numbers import NonNegative, Number, PositiveInt
from grupo.core.paper import Paper
from grupo.core.requires import Requires
from grupo.method import Method
from grupo.rollouts.samplers import GroupSampler

PAPER = Paper(
    title="Think Only When You Need with Large Hybrid-Reasoning Models",
    use="The policy starts with a tag for thinking or not, and should learn when each pays.",
    tags=("length", "advantage"),
    checked=("golden", "properties", "run"),
    catalogue=("hgpo-lhrm",),
)
ZSCORE = chain(Center(), ScaleByStd())


@component
class HybridModeAdvantage:
    """z(r_intra) on all tokens + mode_coef z(r_inter) on the first token, the tag of the mode.

    r_intra is 1 for the best rollout of a mode, shared by equals. r_inter is 1 in the better mode:
    thinking (reward term "mode" above 0.5) if its mean reward exceeds the other's by more than
    margin.

    Args:
        mode_coef: weight of the choice of the mode (alpha in the paper).
        margin: lead in mean reward that thinking needs.
    """

    mode_coef: Number
    margin: Number

    requires = Requires(reward_terms=("mode",))

    def __call__(self, x: Tensor, batch: Batch) -> Tensor:
        thinks = batch.reward_terms["mode"] > 0.5
        best = (x == group_ops.max(x, ByRewardTerm("mode")(batch))).to(x)
        intra = best / group_ops.sum(best, ByRewardTerm("mode")(batch))
        inter = (thinks == self._thinking_wins(x, thinks, batch.group)).to(x)
        tag = self.mode_coef * ZSCORE(inter, batch)[batch.rollout, None] * (token_index(batch) == 0)
        return ZSCORE(intra, batch)[batch.rollout, None] + tag

    def _thinking_wins(self, x: Tensor, thinking: Tensor, group: Tensor) -> Tensor:
        mean_without = group_ops.mean_where(~thinking, x, group)
        return group_ops.mean_where(thinking, x, group) > mean_without + self.margin


def hgpo_hybrid(
    group_size: PositiveInt = 4, mode_coef: NonNegative = 1.0, margin: NonNegative = 0.2
) -> Method:
    """A = z(best of its mode) + mode_coef z(in the better mode), the latter on the mode's tag
    alone.

    The environment forces half of a task's rollouts into each mode and labels them.

    Args:
        group_size: rollouts per task.
        mode_coef: weight of the choice of the mode (alpha in the paper).
        margin: lead in mean reward that thinking needs.
    """
    # Eq. 8 to 13; clip 0.5 and KL 0.001 are the paper's. In the paper the first of equal bests
    # wins; here they share. A tie goes to the short mode: our choice. The paper also updates the
    # reference.
    loss = Clip(0.5, 0.5) + 0.001 * KL()
    return Method(
        sampler=GroupSampler(group_size),
        advantage=HybridModeAdvantage(mode_coef, margin),
        loss=loss,
    )
