"""PTA-GRPO: a plan is paid by the accuracy of its chains. Dou et al., 2025, arXiv:2510.01833."""

from torch import Tensor

from grupo.algo.advantages import ByRewardTerm, Center, ScaleByStd, chain
from grupo.core import group_ops
from grupo.core.batch import Batch
from grupo.core.component import component
from grupo.core.numbers import NonNegative, NumberOrSchedule, PositiveInt
from grupo.core.paper import Paper, Source
from grupo.core.requires import Requires
from grupo.method import Method
from grupo.rollouts.samplers import FirstTurnTree


def pta_grpo(
    num_plans: PositiveInt = 4,
    chains_per_plan: PositiveInt = 4,
    plan_coef: NonNegative = 0.5,
    format_coef: NonNegative = 0.1,
) -> Method:
    """GRPO over num_plans x chains_per_plan rollouts, R = correct + plan_coef V(plan) + format_coef
    format.

    V of a plan is the fraction of its chains that are correct. The first turn is the plan. Reward
    terms: "correct", "format", and "first_turn", which the sampler provides.

    Args:
        num_plans: plans per task (our choice).
        chains_per_plan: rollouts per plan (our choice).
        plan_coef: weight of the plan's accuracy (our choice).
        format_coef: weight of the format (our choice).
    """
    return Method(
        sampler=FirstTurnTree(num_plans, chains_per_plan),
        advantage=chain(PlanReward(plan_coef, format_coef), Center(), ScaleByStd()),
    )


@component
class PlanReward:
    """correct + plan_coef mean(correct | same plan) + format_coef format.

    Rollouts share a plan if they share their first turn.

    Args:
        plan_coef: weight of the plan's accuracy.
        format_coef: weight of the format.
    """

    plan_coef: NumberOrSchedule
    format_coef: NumberOrSchedule

    requires = Requires(reward_terms=("correct", "format", "first_turn"))

    def __call__(self, x: Tensor, batch: Batch) -> Tensor:
        correct = batch.reward_terms["correct"]
        value = group_ops.mean(correct, ByRewardTerm("first_turn")(batch))
        return correct + self.plan_coef * value + self.format_coef * batch.reward_terms["format"]


PAPER = Paper(
    title="Plan Then Action: High-Level Planning Guidance Reinforcement Learning for LLM Reasoning",
    use="The policy writes a short plan first, and several chains can be sampled from each plan.",
    tags=("tree", "reward"),
    checked=("golden", "properties", "run"),
    catalogue=("pta-grpo",),
    source=Source(
        "third_party",
        (
            "reviews and the abstract: a reward of outcome, plan quality and format over chains "
            "sampled from each plan"
        ),
    ),
    plan="not stated in any source that was opened; one update per step",
    missing=(
        "The SFT stage on plans that a stronger model wrote.",
        "The length term of one version of the reward.",
    ),
    deviations=(
        "The weights of the reward and the numbers of plans and chains are our choice.",
        "The clip of 0.2, the mean over answers and the absence of a KL divergence are our choice.",
    ),
    audit=(
        "formula compared with the catalogue's row and the file's own account; no document could "
        "be opened"
    ),
)
