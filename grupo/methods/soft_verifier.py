"""RLVR with soft rewards: the verifier's probability is paid. Su et al., 2025, arXiv:2503.23829."""

from grupo.algo.advantages import StandardiseBatch, UseRewardTerm, chain
from grupo.algo.aggregation import token_sum
from grupo.algo.losses import Reinforce
from grupo.core import group_ops
from grupo.core.numbers import PositiveInt
from grupo.core.paper import Paper, Source
from grupo.method import Method
from grupo.rollouts.samplers import GroupSampler


def soft_verifier(group_size: PositiveInt = 1) -> Method:
    """A = (r - mean(r)) / std(r) over the batch, r = the judge's probability, by `soft_reward`.

    Reward terms: "verified", r in [0, 1]. loss = mean over answers of -A log pi(answer): plain
    REINFORCE.

    Args:
        group_size: rollouts per task (our choice).
    """
    advantage = chain(UseRewardTerm("verified"), StandardiseBatch(1e-12, group_ops.population_std))
    return Method(
        sampler=GroupSampler(group_size),
        advantage=advantage,
        loss=Reinforce(),
        aggregation=token_sum,
    )


def soft_reward(judgement: str, probability: float) -> float:
    """p for output "1" of the judge, 1 - p for "0", else 0; p is the probability of the output."""
    return {"1": probability, "0": 1 - probability}.get(judgement.strip(), 0.0)


PAPER = Paper(
    title="Crossing the Reward Bridge: Expanding RL with Verifiable Rewards Across Diverse Domains",
    use="Reference answers are free-form, and a small judge compares them in one token.",
    tags=("reward", "advantage"),
    checked=("golden", "properties", "run"),
    catalogue=("rlvr-soft-generative-verifier",),
    source=Source(
        "third_party",
        (
            "public reviews for verifier, soft score and z-score; the case formula of soft_reward "
            "is from memory"
        ),
    ),
    plan="not stated in any source that was opened; one update per step",
    missing=(
        "RLOO and REINFORCE++, which the paper also runs.",
        "The training of the small judge.",
    ),
    deviations=(
        (
            "The standard deviation is not specified: that of the batch as a population, so two "
            "rewards give +-1."
        ),
    ),
    audit="reward and normalisation compared with a public review of the paper",
)
