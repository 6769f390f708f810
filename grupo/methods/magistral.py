"""Magistral: GRPO in five changes. Rastogi et al., 2025, arXiv:2506.10910."""

from grupo.algo.advantages import Center, StandardiseAll, chain
from grupo.algo.aggregation import token_mean
from grupo.algo.filters import informative
from grupo.algo.losses import Clip
from grupo.core.paper import Paper
from grupo.method import Method
from grupo.rollouts.samplers import Independent

PAPER = Paper(
    title="Magistral",
    use="A large run from a checkpoint with no reasoning in it, without a reference in memory.",
    verl="adv_estimator='reinforce_plus_plus_baseline' normalises over tokens, not over answers",
    checked=("golden", "laws", "run"),
)


def magistral(group: int = 16, low: float = 0.2, high: float = 0.28) -> Method:
    """A = r - mean(r) by group, then to mean 0 and std 1 over the minibatch; no KL (section 2.1).

    loss = 1 / sum_i L_i times the sum over all tokens of -min(R A, clip(R, 1 - `low`, 1 + `high`)
    A), over groups whose rewards differ.
    """
    # `high` was moved between 0.26 and 0.28, 0.3 for the small model; `low` and the group are not
    # printed, nor which std. Credit sees a step's batch: it is the minibatch where a step has one
    # update. L_i is summed over the batch here, over a group in the paper's expectation.
    return Method(
        sample=Independent(group),
        curate=informative,
        credit=chain(Center(), StandardiseAll()),
        loss=Clip(low, high),
        weigh=token_mean,
    )
