"""CGPO, CODPO: best feasible against worst infeasible. Xu et al., 2024, arXiv:2409.20370."""

from grupo.algo.advantages import identity
from grupo.algo.aggregation import group_mean
from grupo.algo.losses import (
    BestFeasibleAgainstWorst,
    ChosenNLL,
    Logistic,
    LogRatio,
    Preference,
)
from grupo.core import group_ops
from grupo.core.batch import Batch, PerAction, broadcast_to_tokens
from grupo.core.component import component
from grupo.core.numbers import NonNegative, Positive, PositiveInt
from grupo.core.paper import Paper, Source
from grupo.core.requires import Requires
from grupo.method import Method
from grupo.rollouts.samplers import GroupSampler


def cgpo_codpo(
    group_size: PositiveInt = 4, beta: Positive = 0.1, nll_coef: NonNegative = 5.0
) -> Method:
    """DPO between a group's best feasible answer y_w and its worst infeasible one y_l, plus NLL.

    loss = -log sigmoid(beta (h(y_w) - h(y_l))) - nll_coef / |y_w| log pi(y_w), a mean over groups
    with a feasible answer, with h = log(pi / pi_ref). The reward is the reward model's.
    Reward term: "feasible", 1 where all judges accept.

    Args:
        group_size: rollouts per task.
        beta: inverse temperature of DPO.
        nll_coef: weight of the winner's mean log-likelihood.
    """
    pairing = BestFeasibleAgainstWorst()
    loss = Preference(LogRatio(), Logistic(beta), pairing) + nll_coef * ChosenNLL(pairing)
    return Method(
        sampler=GroupSampler(group_size),
        advantage=identity,
        loss=loss,
        aggregation=FeasibleGroupMean(),
    )


@component
class FeasibleGroupMean:
    """`group_mean` over the groups with a feasible rollout; the other groups weigh 0.

    Args:
        reward_term: name of the reward term that is 1 where all judges accept, else 0.

    >>> from grupo.testing.batches import make_batch
    >>> batch = make_batch(group=[0, 0, 1], reward_terms={"feasible": [1.0, 0.0, 0.0]})
    >>> FeasibleGroupMean()(batch).flatten().tolist()
    [0.5, 0.5, 0.0]
    """

    reward_term: str = "feasible"

    @property
    def requires(self) -> Requires:
        return Requires(reward_terms=(self.reward_term,))

    def __call__(self, batch: Batch) -> PerAction:
        feasible = (batch.reward_terms[self.reward_term] == 1).to(batch.reward)
        has_feasible = group_ops.max(feasible, batch.group)
        weight = group_mean(batch) * broadcast_to_tokens(has_feasible, batch)
        return (weight / weight.sum().clamp(min=1e-12)).to(batch.old_logp)


PAPER = Paper(
    title="The Perfect Blend: Redefining RLHF with Mixture of Judges",
    use="Most groups contain both feasible and infeasible answers.",
    tags=("preferences", "reward"),
    checked=("golden", "properties", "run"),
    catalogue=("cgpo",),
    source=Source("third_party", "TRL's draft of a CGPOTrainer, which cites eq. 14 and 18"),
    plan="not stated in any source that was opened; one update per step",
    missing=(
        "The mixture of tasks, each with its own judges and optimizer.",
        "The draft's optional penalty on answers without an end token (missing_eos_penalty).",
    ),
    deviations=(
        "Answers of equal reward share their place.",
        (
            "Only feasible answers can be the best and only infeasible ones the worst. The draft "
            "multiplies the rewards of the others by 0, so that one of them can be chosen: as best "
            "where feasible rewards are negative, as worst where infeasible ones are positive."
        ),
    ),
    audit=(
        "loss, pairs and skipped groups compared with TRL's draft, constants with the catalogue's "
        "row of its configuration; the paper could not be opened"
    ),
)
