"""GCPO: an optional step pays where it helps its group. Wang et al., 2025, arXiv:2506.07160."""

from dataclasses import replace

from torch import Tensor

from grupo.algo.advantages import Center, ScaleByStd, chain
from grupo.core import group_ops
from grupo.core.batch import Batch
from grupo.core.component import component
from grupo.core.numbers import NonNegative, NumberOrSchedule, PositiveInt
from grupo.core.paper import Paper, Source
from grupo.core.requires import Requires
from grupo.method import Method
from grupo.rollouts.samplers import GroupPart, GroupSampler, SplitGroup


def gcpo(
    max_length: PositiveInt,
    group_size: PositiveInt = 8,
    margin: NonNegative = 0.1,
    reward_weights: tuple[NonNegative, NonNegative, NonNegative] = (0.5, 0.5, 0.1),
    parts: tuple[GroupPart, ...] = (),
) -> Method:
    """GRPO on r = accuracy + format + M construction + length, M = +-1 as the construction helps.

    Reward terms: "correct", "format" and "construction".

    Args:
        max_length: length limit of an answer, in tokens.
        group_size: rollouts per task (our choice).
        margin: difference in accuracy that counts (our choice).
        reward_weights: weights of format, construction and length (our choice).
        parts: parts of a group, whose prompt or forced beginning asks for the construction (value
            1), for none (value 0), or for neither (value 0.5); M compares the former two. Forced
            tokens are not trained on. () for one group, in which M compares the rollouts that
            constructed with the others.
    """
    reward = ConstructionReward(max_length, margin, *reward_weights)
    sampler = GroupSampler(group_size)
    if parts:
        reward = replace(reward, contrast=INSTRUCTED)
        sampler = SplitGroup(group_size, parts=parts, reward_term=INSTRUCTED, train_prefix=False)
    return Method(sampler=sampler, advantage=chain(reward, Center(), ScaleByStd()))


REWARD_TERMS = ("correct", "format", "construction")


INSTRUCTED = "instructed"  # reward term: whether an instruction asks for the optional step


@component
class ConstructionReward:
    """r = a + format_coef f + construction_coef M u + length_coef min(1, L / max_length).

    u = 1 for rollouts that took the optional step. M = 1 if the accuracy of those that took it, or
    were instructed to, is higher by more than `margin`, -1 if lower, else 0; it is 0 where all or
    none did. "construction" is yes above 1/2.

    Args:
        max_length: length limit of an answer, in tokens.
        margin: difference in accuracy that counts.
        format_coef: weight of the format.
        construction_coef: weight of the optional step.
        length_coef: weight of the length.
        contrast: reward term that splits a group for M: above 1/2 with the step, below without.
    """

    max_length: PositiveInt
    margin: NumberOrSchedule
    format_coef: NumberOrSchedule
    construction_coef: NumberOrSchedule
    length_coef: NumberOrSchedule
    contrast: str = "construction"

    @property
    def requires(self) -> Requires:
        return Requires(reward_terms=tuple(dict.fromkeys((*REWARD_TERMS, self.contrast))))

    def __call__(self, x: Tensor, batch: Batch) -> Tensor:
        a, f, used = (batch.reward_terms[name] for name in REWARD_TERMS)
        u = used > 0.5
        g = batch.group
        split = batch.reward_terms[self.contrast]
        length = (batch.lengths / self.max_length).clamp(max=1)
        gap = group_ops.mean_where(split > 0.5, a, g) - group_ops.mean_where(split < 0.5, a, g)
        is_split = (group_ops.max(split, g) > 0.5) & (group_ops.min(split, g) < 0.5)
        M = gap.sign() * (gap.abs() > self.margin) * is_split
        return a + self.format_coef * f + self.construction_coef * M * u + self.length_coef * length


PAPER = Paper(
    title="GeometryZero: Improving Geometry Solving for LLM with Group Contrastive Policy"
    " Optimization",
    use="An optional step, such as an auxiliary line or a tool call, helps some tasks and "
    "harms others.",
    tags=("reward", "agents"),
    checked=("golden", "properties", "run"),
    example="gcpo(max_length=64)",
    catalogue=("geometryzero-gcpo",),
    source=Source(
        "third_party",
        "a review (themoonlight.io) and public reviews of the ICLR 2026 submission",
    ),
    plan="not stated in any source that was opened; one update per step",
    deviations=(
        "Without `parts`, M is measured within one group, which is split by what its rollouts did.",
        "With `parts`, the rollouts of all parts are trained on, as one group.",
        "Margin, weights and the form of the length reward are our choice.",
        "So are the clip of 0.2, the mean over answers and no KL divergence.",
    ),
    audit=(
        "compared with the catalogue's row of those reviews; the authors' ekonwang/GeometryZero "
        "could not be opened"
    ),
    shown=("docs/vision_shown/geometryzero.md#results",),
)
