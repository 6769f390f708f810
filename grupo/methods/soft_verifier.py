"""RLVR with soft rewards: the verifier's doubt is paid. Su et al., 2025, arXiv:2503.23829."""

from grupo.algo.advantages import StandardiseAll, TakePart, chain
from grupo.algo.aggregation import sequence_sum
from grupo.algo.losses import Reinforce
from grupo.core import group_ops
from grupo.core.paper import Paper
from grupo.method import Method
from grupo.rollouts.samplers import Independent

PAPER = Paper(
    title="Crossing the Reward Bridge: Expanding RL with Verifiable Rewards Across Diverse Domains",
    use="Right answers are known but free-form, and a small judge compares them in one token.",
    checked=("golden", "laws", "run"),
    catalogue=("rlvr-soft-generative-verifier",),
)


def soft(said: str, probability: float) -> float:
    """p if the judge says "1", 1 - p if it says "0", p the probability of what it says; else 0."""
    return {"1": probability, "0": 1 - probability}.get(said.strip(), 0.0)


def soft_verifier(group: int = 1) -> Method:
    """A = (r - mean(r)) / std(r) over the batch, r = parts["verified"] in 0..1, by `soft`.

    loss = mean over answers of -A log pi(answer): plain REINFORCE.
    """
    # The case formula of `soft` is from memory of the paper, which also runs RLOO and REINFORCE++;
    # the group is our choice: no baseline needs one.
    # Which standard deviation is not said: that of the batch as a population, so two give +-1.
    credit = chain(TakePart("verified"), StandardiseAll(1e-12, group_ops.population_std))
    return Method(sample=Independent(group), credit=credit, loss=Reinforce(), weigh=sequence_sum)
