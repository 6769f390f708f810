"""PTA-GRPO: a plan is worth what its chains achieve. Dou et al., 2025, arXiv:2510.01833."""

from torch import Tensor

from grupo.algo.advantages import ByRewardTerm, Center, ScaleByStd, chain
from grupo.core import group_ops
from grupo.core.batch import Batch
from grupo.core.component import component
from grupo.core.paper import Paper
from grupo.method import Method
from grupo.rollouts.samplers import FirstTurnTree

PAPER = Paper(
    title="Plan Then Action: High-Level Planning Guidance Reinforcement Learning for LLM Reasoning",
    use="The policy writes a short plan first, and several chains can be sampled from each plan.",
    checked=("golden", "laws", "run"),
    catalogue=("pta-grpo",),
)


@component
class PlanReward:
    """correct + plan mean(correct | same plan) + format format.

    Rollouts of a group share a plan if they grew from one trunk.
    """

    plan_coef: float
    format_coef: float
    required_reward_terms = ("correct", "format", "first_turn")

    def __call__(self, x: Tensor, batch: Batch) -> Tensor:
        correct = batch.reward_terms["correct"]
        value = group_ops.mean(correct, ByRewardTerm("first_turn")(batch))
        return correct + self.plan_coef * value + self.format_coef * batch.reward_terms["format"]


def pta_grpo(
    num_plans: int = 4, chains_per_plan: int = 4, plan_coef: float = 0.5, format_coef: float = 0.1
) -> Method:
    """GRPO over `num_plans` x `chains_per_plan` rollouts; R = correct + `plan_coef` V(its plan) + `format_coef` format.

    V of a plan is the share of its chains that are right: two right answers differ by their plans.
    The first turn is the plan. Reward terms: "correct" and "format", and "first_turn", which the sampler gives.
    """
    # Only the abstract and reviews were seen: a reward of outcome, plan quality and format over
    # chains sampled from each plan. All four numbers are our choice. A first stage of imitation
    # of plans that a stronger model wrote comes before it.
    return Method(
        sampler=FirstTurnTree(num_plans, chains_per_plan),
        advantage=chain(PlanReward(plan_coef, format_coef), Center(), ScaleByStd()),
    )
