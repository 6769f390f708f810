"""Stratified GRPO: rollouts are compared with their like. Zhu et al., 2025, arXiv:2510.06214."""

from torch import Tensor

from grupo.algo.advantages import (
    AdvantageEstimator,
    ByRewardTerm,
    Center,
    GroupedBy,
    ScaleByStd,
    chain,
)
from grupo.core.batch import Batch
from grupo.core.component import component
from grupo.core.group_ops import population_std
from grupo.core.paper import Paper
from grupo.method import Method
from grupo.rollouts.samplers import GroupSampler

PAPER = Paper(
    title="Stratified GRPO: Handling Structural Heterogeneity in Reinforcement Learning of LLM "
    "Search Agents",
    use="Agents search or call tools as often as they like, and more calls mean other rewards.",
    checked=("golden", "laws", "run"),
    catalogue=("stratified-grpo",),
)


@component
class BlendAdvantages:
    """`weight` of one credit and 1 - `weight` of another."""

    weight: float
    first: AdvantageEstimator
    second: AdvantageEstimator

    def __call__(self, x: Tensor, batch: Batch) -> Tensor:
        return self.weight * self.first(x, batch) + (1 - self.weight) * self.second(x, batch)


def stratified_grpo(
    group_size: int = 8, stratum_weight: float = 0.8, stratum_term: str = "tool_calls"
) -> Method:
    """A = `stratum_weight` A_stratum + (1 - `stratum_weight`) A_group, each (r - mean) / std within its circle.

    Who belongs to a stratum is equal in the part `stratum_term`: the number of tool calls. A rollout
    alone in its stratum has A_stratum = 0.
    """
    # The blend is stated in the abstract; a third party's code has the formula. `stratum_weight` and the
    # size of groups are our choice. Std over n: the paper's claim is unit variance in each stratum.
    norm = chain(Center(), ScaleByStd(std=population_std))
    return Method(
        sampler=GroupSampler(group_size),
        advantage=BlendAdvantages(
            stratum_weight, GroupedBy(norm, ByRewardTerm(stratum_term)), norm
        ),
    )
