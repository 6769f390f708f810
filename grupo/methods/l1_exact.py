"""L1-Exact: every token off the budget costs. Aggarwal and Welleck, 2025, arXiv:2503.04697."""

from torch import Tensor

from grupo.algo.advantages import Center, ScaleByStd, chain
from grupo.core.batch import Batch
from grupo.core.component import component
from grupo.core.paper import Paper
from grupo.method import Method
from grupo.rollouts.samplers import GroupSampler

PAPER = Paper(
    title="L1: Controlling How Long A Reasoning Model Thinks With Reinforcement Learning",
    use="The prompt says how many tokens to think, and that is how many it should be.",
    checked=("golden", "laws", "reference", "run"),
)


@component
class BudgetDistancePenalty:
    """x - price |budget - L|."""

    length_coef: float
    budget_term: str = "budget"

    @property
    def required_reward_terms(self) -> tuple[str, ...]:
        """How many tokens the prompt asked for."""
        return (self.budget_term,)

    def __call__(self, x: Tensor, batch: Batch) -> Tensor:
        return x - self.length_coef * (batch.reward_terms[self.budget_term] - batch.lengths).abs()


def l1_exact(group_size: int = 8, length_coef: float = 0.0003) -> Method:
    """LCPO-Exact: r = [right] - `length_coef` |n - L|, n = reward_terms["budget"] tokens asked for.

    A = (r - mean(r)) / std(r).
    """
    # The price is the paper's; the group is our choice.
    credit = chain(BudgetDistancePenalty(length_coef), Center(), ScaleByStd())
    return Method(sampler=GroupSampler(group_size), advantage=credit)
