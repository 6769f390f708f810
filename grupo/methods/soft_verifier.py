"""RLVR with soft rewards: the verifier's doubt is paid. Su et al., 2025, arXiv:2503.23829."""

from grupo.algo.advantages import StandardiseBatch, UseRewardTerm, chain
from grupo.algo.aggregation import token_sum
from grupo.algo.losses import Reinforce
from grupo.core import group_ops
from grupo.core.paper import Paper
from grupo.method import Method
from grupo.rollouts.samplers import GroupSampler

PAPER = Paper(
    title="Crossing the Reward Bridge: Expanding RL with Verifiable Rewards Across Diverse Domains",
    use="Right answers are known but free-form, and a small judge compares them in one token.",
    checked=("golden", "laws", "run"),
    catalogue=("rlvr-soft-generative-verifier",),
)


def soft_reward(judgement: str, probability: float) -> float:
    """p if the judge says "1", 1 - p if it says "0", p the probability of what it says; else 0."""
    return {"1": probability, "0": 1 - probability}.get(judgement.strip(), 0.0)


def soft_verifier(group_size: int = 1) -> Method:
    """A = (r - mean(r)) / std(r) over the batch, r = reward_terms["verified"] in 0..1, by `soft_spec`.

    loss = mean over answers of -A log pi(answer): plain REINFORCE.
    """
    # The case formula of `soft_spec` is from memory of the paper, which also runs RLOO and REINFORCE++;
    # the group is our choice: no baseline needs one.
    # Which standard deviation is not said: that of the batch as a population, so two give +-1.
    credit = chain(UseRewardTerm("verified"), StandardiseBatch(1e-12, group_ops.population_std))
    return Method(
        sampler=GroupSampler(group_size), advantage=credit, loss=Reinforce(), aggregation=token_sum
    )
