"""L1-Max: the token budget is a soft limit. Aggarwal and Welleck, 2025, arXiv:2503.04697."""

from torch import Tensor

from grupo.algo.advantages import Center, ScaleByStd, chain
from grupo.core.batch import Batch
from grupo.core.component import component
from grupo.core.numbers import Fraction, NonNegative, Number, PositiveInt
from grupo.core.paper import Paper
from grupo.core.requires import Requires
from grupo.method import Method
from grupo.rollouts.samplers import GroupSampler

PAPER = Paper(
    title="L1: Controlling How Long A Reasoning Model Thinks With Reinforcement Learning",
    use="The prompt states how many tokens to think at most.",
    tags=("length", "reward"),
    checked=("golden", "properties", "reference", "run"),
)


@component
class SoftBudgetLimit:
    """x clip(length_coef (budget - L) + reward_at_budget, 0, 1).

    Args:
        length_coef: loss of reward per token.
        reward_at_budget: fraction of the reward at exactly the budget.
        budget_term: reward term that holds the budget, in tokens.
    """

    length_coef: Number
    reward_at_budget: Fraction
    budget_term: str = "budget"

    @property
    def requires(self) -> Requires:
        return Requires(reward_terms=(self.budget_term,))

    def __call__(self, x: Tensor, batch: Batch) -> Tensor:
        remaining = batch.reward_terms[self.budget_term] - batch.lengths
        return x * (self.length_coef * remaining + self.reward_at_budget).clamp(0, 1)


def l1_max(
    group_size: PositiveInt = 8,
    length_coef: NonNegative = 0.0003,
    reward_at_budget: Fraction = 0.5,
) -> Method:
    """LCPO-Max: r = [correct] clip(length_coef (n - L) + reward_at_budget, 0, 1).

    A = (r - mean(r)) / std(r). Reward terms: "budget", the n tokens that the prompt allows.

    Args:
        group_size: rollouts per task (our choice).
        length_coef: loss of reward per token (paper: 0.0003).
        reward_at_budget: fraction of the reward at exactly n tokens (paper: 0.5).
    """
    # The released code has (clip(alpha (n - L), -1, 1) + 1) / 2: its alpha is twice length_coef.
    advantage = chain(SoftBudgetLimit(length_coef, reward_at_budget), Center(), ScaleByStd())
    return Method(sampler=GroupSampler(group_size), advantage=advantage)
