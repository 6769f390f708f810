"""ProRL: a KL to a reference that catches up, for long runs. Liu et al., 2025, arXiv:2505.24864."""

from grupo.algo.aggregation import token_mean
from grupo.algo.filters import informative
from grupo.algo.losses import KL, Clip
from grupo.algo.minibatches import Passes
from grupo.core.paper import Paper
from grupo.core.reference_update import Follow
from grupo.method import Method
from grupo.rollouts.curricula import Refilled, Shuffled
from grupo.rollouts.samplers import Independent

PAPER = Paper(
    title="ProRL: Prolonged Reinforcement Learning Expands Reasoning Boundaries in Large Language"
    " Models",
    use="Thousands of steps on many kinds of tasks, where runs without a leash go astray.",
    checked=("golden", "laws", "run"),
)


def prorl(
    group: int = 16,
    low: float = 0.2,
    high: float = 0.4,
    kl: float = 0.0001,
    every: int = 400,
    rounds: int = 10,
) -> Method:
    """DAPO's clip and dynamic sampling, plus `kl` k3 to a reference reset to the policy at times.

    loss = mean over all tokens of -min(R A, clip(R, 1 - `low`, 1 + `high`) A) + `kl` k3.
    """
    # The paper resets reference and optimizer by hand when validation stalls: `every` is our
    # choice, and the optimizer is kept. From memory: `kl`, of its sequel arXiv:2507.12507, and the
    # four updates, 256 prompts in minibatches of 64. `rounds` is DAPO's.
    return Method(
        curriculum=Refilled(Shuffled(), rounds),
        sample=Independent(group),
        curate=informative,
        loss=Clip(low, high) + kl * KL(),
        weigh=token_mean,
        plan=Passes(minibatches=4),
        reference=Follow(rate=1.0, every=every),
    )
