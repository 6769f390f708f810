"""BRPO: a thought is worth its answers at every budget. Qi et al., 2025, arXiv:2505.13438."""

from grupo.algo.advantages.budget_relative import BudgetRelativeAdvantage
from grupo.algo.aggregation import ConstantLength
from grupo.algo.losses import Clip
from grupo.core.paper import Paper
from grupo.method import Method
from grupo.rollouts.samplers import AnytimeBudgets

PAPER = Paper(
    title="Optimizing Anytime Reasoning via Budget Relative Policy Optimization",
    use="Answers have to be good whenever thinking is cut short.",
    checked=("golden", "laws", "run"),
    catalogue=("brpo-anytime",),
)


def brpo(
    traces: int = 8,
    token_budgets: tuple[int, ...] = (2000, 4000, 6000, 8000),
    answers_per_budget: int = 4,
    answer_tokens: int = 118,
    prior: tuple[float, ...] = (1.0, 2.0, 3.0, 4.0),
    clip_eps: float = 0.2,
) -> Method:
    """A_s = ret_s - (s V1 + (S - s) V2) / S for the piece of a thought that ends at budget s < S.

    ret_s = sum_{j>=s} p_j R_j, R_j the mean reward of `answers_per_budget` answers at budget j, p by `prior`;
    V2 its mean over the `traces`; V1 = sum_{k<s} 2^k R_k / sum_{k<s} 2^k, times sum_{j>=s} p_j.
    Answers: A = r - mean(r) at the same cut. Clipped; every token counts the same, by a constant.
    """
    # As the authors' code: the paper's p is the budgets' own (linear); (1, 1, 1, 1) is uniform. Its
    # constant is all padded positions of the batch; here all that a trace and its answers may be.
    per = len(token_budgets) * answers_per_budget
    return Method(
        sampler=AnytimeBudgets(traces, token_budgets, answers_per_budget, answer_tokens),
        advantage=BudgetRelativeAdvantage(prior, answers_per_budget),
        loss=Clip(clip_eps, clip_eps),
        aggregation=ConstantLength(max(1, token_budgets[-1] // per + answer_tokens)),
    )
