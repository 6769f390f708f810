"""Stratified GRPO: rollouts are compared within strata. Zhu et al., 2025, arXiv:2510.06214."""

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
from grupo.core.numbers import NonNegative, NumberOrSchedule, PositiveInt
from grupo.core.paper import Paper, Source
from grupo.method import Method
from grupo.rollouts.samplers import GroupSampler


def stratified_grpo(
    group_size: PositiveInt = 8, stratum_weight: NonNegative = 0.8, stratum_term: str = "tool_calls"
) -> Method:
    """A = stratum_weight A_stratum + (1 - stratum_weight) A_group, each (r - mean) / std.

    A stratum is the rollouts of a group with equal reward term stratum_term, the number of tool
    calls. A lone rollout has A_stratum = 0.

    Args:
        group_size: rollouts per task (our choice).
        stratum_weight: weight of A_stratum (our choice).
        stratum_term: reward term that defines the strata.
    """
    z_score = chain(Center(), ScaleByStd(std=population_std))
    return Method(
        sampler=GroupSampler(group_size),
        advantage=BlendAdvantages(
            stratum_weight, GroupedBy(z_score, ByRewardTerm(stratum_term)), z_score
        ),
    )


@component
class BlendAdvantages:
    """weight x first + (1 - weight) x second, of two advantage estimators.

    Args:
        weight: weight of the first.
        first: advantage estimator.
        second: advantage estimator.
    """

    weight: NumberOrSchedule
    first: AdvantageEstimator
    second: AdvantageEstimator

    def __call__(self, x: Tensor, batch: Batch) -> Tensor:
        return self.weight * self.first(x, batch) + (1 - self.weight) * self.second(x, batch)


PAPER = Paper(
    title="Stratified GRPO: Handling Structural Heterogeneity in Reinforcement Learning of LLM "
    "Search Agents",
    use="Agents may search or call tools any number of times, and more calls mean other rewards.",
    tags=("agents", "advantage"),
    checked=("golden", "properties", "run"),
    catalogue=("stratified-grpo",),
    source=Source(
        "third_party",
        "Wodlfvllf/grpo-composer, core/advantages/stratified.py; the blend is in the abstract",
    ),
    plan="not stated in any source that was opened; one update per step",
    deviations=(
        (
            "Std by n, with 1e-6 added, since the paper's claim is unit variance in each stratum; "
            "that code divides by n - 1, which leaves a lone rollout undefined, and adds 1e-8, or "
            "1e-6 where its configuration selects it."
        ),
        "The weight of the strata is our choice; that code has 1, without blend.",
        (
            "There is no KL divergence here; that code's configs/papers/stratified_grpo.yaml adds "
            "k1 with weight 0.01, averaged over tokens. Rows count equally in both."
        ),
    ),
    audit="formula compared with stratified.py by other people and a public review",
)
