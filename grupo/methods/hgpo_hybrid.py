"""Hybrid GPO: separate credit for mode and answer. Jiang et al., 2025, arXiv:2505.14631."""

from torch import Tensor

from grupo.algo.advantages import ByRewardTerm, Center, ScaleByStd, chain
from grupo.algo.aggregation import token_sum
from grupo.algo.losses import KL, Clip
from grupo.core import group_ops
from grupo.core.batch import Batch
from grupo.core.component import component
from grupo.core.numbers import NonNegative, NumberOrSchedule, PositiveInt
from grupo.core.paper import Paper, Source
from grupo.core.requires import Requires
from grupo.method import Method
from grupo.rollouts.samplers import GroupPart, SplitGroup
from grupo.util.errors import ConfigError


def hgpo_hybrid(
    group_size: PositiveInt = 4,
    mode_coef: NonNegative = 1.0,
    margin: NonNegative = 0.2,
    think_tag: str = "<think>",
    no_think_tag: str = "<no_think>",
) -> Method:
    """A = z(best of its mode) + mode_coef z(in the better mode), the latter on the mode's tag
    alone.

    Half of a group is forced to begin with each tag; the tags are trained on. loss = mean over
    answers of the sum over tokens of -min(R A, clip(R, 0.5, 1.5) A) + 0.001 k3 (eq. 11).

    Args:
        group_size: rollouts per task, an even number.
        mode_coef: weight of the choice of the mode (alpha in the paper).
        margin: lead in mean reward that thinking needs.
        think_tag: beginning of an answer with thinking.
        no_think_tag: beginning of an answer without thinking.
    """
    if not think_tag or not no_think_tag or think_tag == no_think_tag:
        raise ConfigError(
            f"hgpo_hybrid.no_think_tag: {no_think_tag!r}, with think_tag {think_tag!r}."
            " Allowed: two different tags."
        )
    modes = (GroupPart(1.0, think_tag), GroupPart(0.0, no_think_tag))
    return Method(
        sampler=SplitGroup(group_size, parts=modes, reward_term="mode"),
        advantage=HybridModeAdvantage(mode_coef, margin),
        loss=Clip(0.5, 0.5) + 0.001 * KL(),
        aggregation=token_sum,
    )


ZSCORE = chain(Center(), ScaleByStd())


@component
class HybridModeAdvantage:
    """z(r_intra) on all tokens + mode_coef z(r_inter) on the forced tokens, the tag of the mode.

    r_intra is 1 for the best rollout of a mode, shared by equals. r_inter is 1 in the better mode:
    thinking (reward term "mode" above 0.5) if its mean reward exceeds the other's by more than
    margin.

    Args:
        mode_coef: weight of the choice of the mode (alpha in the paper).
        margin: lead in mean reward that thinking needs.
    """

    mode_coef: NumberOrSchedule
    margin: NumberOrSchedule

    requires = Requires(reward_terms=("mode",), signals=("step/forced",))

    def __call__(self, x: Tensor, batch: Batch) -> Tensor:
        thinks = batch.reward_terms["mode"] > 0.5
        best = (x == group_ops.max(x, ByRewardTerm("mode")(batch))).to(x)
        intra = best / group_ops.sum(best, ByRewardTerm("mode")(batch))
        inter = (thinks == self._thinking_wins(x, thinks, batch.group)).to(x)
        mode_advantage = self.mode_coef * ZSCORE(inter, batch)[batch.rollout, None]
        is_tag = batch.signals["step/forced"] > 0.5
        return ZSCORE(intra, batch)[batch.rollout, None] + mode_advantage * is_tag

    def _thinking_wins(self, x: Tensor, thinking: Tensor, group: Tensor) -> Tensor:
        mean_without = group_ops.mean_where(~thinking, x, group)
        return group_ops.mean_where(thinking, x, group) > mean_without + self.margin


PAPER = Paper(
    title="Think Only When You Need with Large Hybrid-Reasoning Models",
    use="The policy starts with a tag for thinking or not, and should learn when each pays.",
    tags=("length", "advantage"),
    checked=("golden", "properties", "run"),
    catalogue=("hgpo-lhrm",),
    source=Source("paper", "eq. 5 to 12 and section 3.1"),
    plan="Section 3.1: 256 prompts are collected and the batch size is 256: one update per step.",
    missing=(
        "Stage I, fine-tuning on tagged answers of both modes: the policy must know the tags.",
        "The parametric reward model of open-ended tasks.",
        "The update of the reference policy after each outer iteration.",
    ),
    deviations=(
        "Equal best rollouts of a mode share r_intra; which of them eq. 9 selects is not stated.",
        "Both z-scores are over the rollouts of both modes, with a deviation by n - 1; eq. 10 does "
        "not define either.",
        "A tie between the modes goes to the short one, as in the paper's Hybrid Accuracy; eq. 9"
        " does not decide it.",
        "The KL divergence is estimated for each token; eq. 12 writes it with the answer's"
        " probabilities.",
    ),
    audit="Equations 5 to 12 and the constants of section 3.1 compared with the full text.",
)
