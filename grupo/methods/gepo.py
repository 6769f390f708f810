"""GEPO: equivalent answers against inequivalent ones. Wu et al., 2025, arXiv:2505.12723."""

from grupo.algo.advantages import identity
from grupo.algo.aggregation import group_mean
from grupo.algo.losses import (
    ChosenVariance,
    Logistic,
    LogRatio,
    Preference,
    successes_against_failures,
)
from grupo.core.numbers import NonNegative, Positive
from grupo.core.paper import Paper, Source
from grupo.method import Method
from grupo.rollouts.samplers import PreferencePairs


def gepo(beta: Positive = 0.1, variance_coef: NonNegative = 1.0) -> Method:
    """loss = mean over groups of -log sigmoid(beta (mean h(w) - mean h(l))) + c Var h(w).

    h = log(pi / pi_ref); w are the chosen answers of a task and l the rejected ones: lists in its
    columns. With one of each it is DPO.

    Args:
        beta: inverse temperature (our choice).
        variance_coef: c, the weight of the variance (lambda in the paper).
    """
    preference = Preference(LogRatio(), Logistic(beta), successes_against_failures)
    loss = preference + variance_coef * ChosenVariance(LogRatio())
    return Method(sampler=PreferencePairs(), advantage=identity, loss=loss, aggregation=group_mean)


PAPER = Paper(
    title=(
        "On-Policy Optimization with Group Equivalent Preference for Multi-Programming Language "
        "Understanding"
    ),
    use="Prompts have several equally good answers and several wrong ones.",
    tags=("preferences",),
    checked=("golden", "properties", "run"),
    catalogue=("oorl-gepo",),
    source=Source(
        "paper", "its text, with both terms and their weights; its equations could not be read"
    ),
    plan="section 4.1: one epoch in batches of 8. A pass over the groups, one update per batch; "
    "prompts_per_step is the batch",
    missing=("The on-policy loss beside it, whose weight is 1 to this one's 0.01.",),
    deviations=(
        "Whether beta^2 multiplies the variance could not be read: it does not.",
        "The variance divides by the number of chosen answers: the paper's divisor is not known.",
    ),
    audit="both terms and the weights compared with sections 3.2 and 3.3, in whose copy the "
    "equations are missing",
    shown=("docs/comparisons/preferences.md#gepo-equal-rewards-of-equivalent-answers",),
)
