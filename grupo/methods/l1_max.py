"""L1-Max: the budget is a ceiling, and a soft one. Aggarwal and Welleck, 2025, arXiv:2503.04697."""

from torch import Tensor

from grupo.algo.advantages import Center, ScaleByStd, chain
from grupo.core.batch import Batch
from grupo.core.component import component
from grupo.core.paper import Paper
from grupo.method import Method
from grupo.rollouts.samplers import GroupSampler

PAPER = Paper(
    title="L1: Controlling How Long A Reasoning Model Thinks With Reinforcement Learning",
    use="The prompt says how many tokens to think at most.",
    checked=("golden", "laws", "reference", "run"),
)


@component
class SoftBudgetLimit:
    """x clip(price (budget - L) + start, 0, 1)."""

    length_coef: float
    reward_at_budget: float
    budget_term: str = "budget"

    @property
    def required_reward_terms(self) -> tuple[str, ...]:
        """How many tokens the prompt allowed."""
        return (self.budget_term,)

    def __call__(self, x: Tensor, batch: Batch) -> Tensor:
        left = batch.reward_terms[self.budget_term] - batch.lengths
        return x * (self.length_coef * left + self.reward_at_budget).clamp(0, 1)


def l1_max(
    group_size: int = 8, length_coef: float = 0.0003, reward_at_budget: float = 0.5
) -> Method:
    """LCPO-Max: r = [right] clip(`length_coef` (n - L) + `reward_at_budget`, 0, 1), n = reward_terms["budget"] tokens.

    `reward_at_budget` is what an answer of exactly n tokens keeps. A = (r - mean(r)) / std(r).
    """
    # Both constants are the paper's; the group is our choice. The released code has
    # (clip(alpha (n - L), -1, 1) + 1) / 2: its alpha is twice `length_coef`.
    credit = chain(SoftBudgetLimit(length_coef, reward_at_budget), Center(), ScaleByStd())
    return Method(sampler=GroupSampler(group_size), advantage=credit)
