"""GFPO: sample more, learn from the shortest. Shrivastava et al., 2025, arXiv:2508.09726."""

from grupo import groups
from grupo.credit import Center, ScaleByStd, chain
from grupo.curate import KeepBest
from grupo.losses import KL, Clip, Entropy
from grupo.method import Method
from grupo.paper import Paper
from grupo.rollout import Rollout
from grupo.sampling import Independent
from grupo.weights import token_mean

PAPER = Paper(
    title="Sample More to Think Less: Group Filtered Policy Optimization for Concise Reasoning",
    use="Answers grow while they get better, and sampling is cheap.",
    trl="GFPOTrainer, experimental, gone by 1.10: num_remains_in_group and a group_filter_func",
    checked=("golden", "laws", "run"),
)


def shortness(rollout: Rollout) -> float:
    """-L: the shortest are kept."""
    return -rollout.length


def efficiency(rollout: Rollout) -> float:
    """r / L: long answers are kept if they earn as much more."""
    return rollout.reward / max(rollout.length, 1)


def gfpo(group: int = 16, keep: int = 8, clip: float = 0.2, kl: float = 0.001) -> Method:
    """Of `group` rollouts the `keep` shortest are learned from; A = (r - mean) / std among them.

    loss = mean over their tokens of -min(R A, clip(R) A) + `kl` k3 - 0.001 entropy (eq. 2).
    .but(curate=KeepBest(keep, efficiency)) keeps the highest rewards per token instead.
    """
    # Eq. 2 divides by the tokens of all `group` rollouts; those not kept are not even learned from
    # here, and not counted. Its std is of the population.
    return Method(
        sample=Independent(group),
        curate=KeepBest(keep, shortness),
        credit=chain(Center(), ScaleByStd(std=groups.population_std)),
        loss=Clip(clip, clip) + kl * KL() + (-0.001) * Entropy(),
        weigh=token_mean,
    )
