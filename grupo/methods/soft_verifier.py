"""RLVR with soft rewards: the verifier's probability is paid. Su et al., 2025, arXiv:2503.23829."""

from grupo.algo.advantages import StandardiseBatch, UseRewardTerm, chain
from grupo.algo.aggregation import token_sum
from grupo.algo.losses import Reinforce
from grupo.core import group_ops
from grupo.core.numbers import PositiveInt
from grupo.core.paper import Paper
from grupo.method import Method
from grupo.rollouts.samplers import GroupSampler

PAPER = Paper(
    title="Crossing the Reward Bridge: Expanding RL with Verifiable Rewards Across Diverse Domains",
    use="Reference answers are free-form, and a small judge compares them in one token.",
    tags=("reward", "advantage"),
    checked=("golden", "properties", "run"),
    catalogue=("rlvr-soft-generative-verifier",),
)


def soft_reward(judgement: str, probability: float) -> float:
    """p for output "1" of the judge, 1 - p for "0", else 0; p is the probability of the output."""
    return {"1": probability, "0": 1 - probability}.get(judgement.strip(), 0.0)


def soft_verifier(group_size: PositiveInt = 1) -> Method:
    """A = (r - mean(r)) / std(r) over the batch, r = the judge's probability, by `soft_reward`.

    Reward terms: "verified", r in [0, 1]. loss = mean over answers of -A log pi(answer): plain
    REINFORCE.

    Args:
        group_size: rollouts per task (our choice).
    """
    # The case formula of soft_reward is from memory of the paper, which also runs RLOO and
    # REINFORCE++. The standard deviation is not specified: that of the batch as a population, so
    # two give +-1.
    advantage = chain(UseRewardTerm("verified"), StandardiseBatch(1e-12, group_ops.population_std))
    return Method(
        sampler=GroupSampler(group_size),
        advantage=advantage,
        loss=Reinforce(),
        aggregation=token_sum,
    )
