"""CGPO, CODPO: best feasible against worst infeasible. Xu et al., 2024, arXiv:2409.20370."""

from grupo.algo.advantages import identity
from grupo.algo.aggregation import rollout_mean
from grupo.algo.losses import (
    BestFeasibleAgainstWorst,
    ChosenNLL,
    Logistic,
    LogRatio,
    Preference,
)
from grupo.core.numbers import NonNegative, Positive, PositiveInt
from grupo.core.paper import Paper, Source
from grupo.method import Method
from grupo.rollouts.samplers import GroupSampler


def cgpo_codpo(
    group_size: PositiveInt = 4, beta: Positive = 0.1, nll_coef: NonNegative = 5.0
) -> Method:
    """DPO between a group's best feasible answer y_w and its worst infeasible one y_l, plus NLL.

    loss = -log sigmoid(beta (h(y_w) - h(y_l))) - nll_coef / |y_w| log pi(y_w), a mean over groups,
    with h = log(pi / pi_ref). The reward is the reward model's.
    Reward term: "feasible", 1 where all judges accept.

    Args:
        group_size: rollouts per task.
        beta: inverse temperature of DPO.
        nll_coef: weight of the winner's mean log-likelihood.
    """
    pairing = BestFeasibleAgainstWorst()
    loss = Preference(LogRatio(), Logistic(beta), pairing) + nll_coef * ChosenNLL(pairing)
    return Method(
        sampler=GroupSampler(group_size), advantage=identity, loss=loss, aggregation=rollout_mean
    )


PAPER = Paper(
    title="The Perfect Blend: Redefining RLHF with Mixture of Judges",
    use="Most groups contain both feasible and infeasible answers.",
    tags=("preferences", "reward"),
    checked=("golden", "properties", "run"),
    catalogue=("cgpo",),
    source=Source("third_party", "TRL's draft of a CGPOTrainer, which cites eq. 14 and 18"),
    plan="not stated in any source that was opened; one update per step",
    missing=("The mixture of tasks, each with its own judges and optimizer.",),
    deviations=("Answers of equal reward share their place.",),
    audit=(
        "formula and constants compared with the catalogue's row of TRL's draft; the paper could "
        "not be opened"
    ),
)
