"""RLOO: the baseline is the mean of the other rollouts. Ahmadian et al., 2024, arXiv:2402.14740."""

from grupo.algo.advantages import Center, chain
from grupo.algo.advantages.kl_in_reward import KLInReward
from grupo.algo.aggregation import token_sum
from grupo.algo.losses import Reinforce
from grupo.algo.minibatches import Updates
from grupo.core import group_ops
from grupo.core.numbers import NonNegative, PositiveInt
from grupo.core.paper import Paper, Source
from grupo.method import Method
from grupo.rollouts.samplers import GroupSampler


def rloo(group_size: PositiveInt = 4, kl_coef: NonNegative = 0.03) -> Method:
    """A_i = R_i - mean of the other R_j, R = r - kl_coef log(pi / ref) of the whole answer.

    loss = mean over answers of -A_i log pi(y_i), the answer being one action.

    A step makes 2 updates, one on each of 2 minibatches.

    Args:
        group_size: rollouts per task (paper: 2 and 4).
        kl_coef: weight of the KL in the reward (paper: 0.03); 0 needs no reference.
    """
    # No ratio and no clip: the paper finds them superfluous.
    center = Center(group_ops.leave_one_out_mean)
    return Method(
        sampler=GroupSampler(group_size),
        advantage=chain(KLInReward(kl_coef), center) if kl_coef else center,
        loss=Reinforce(),
        aggregation=token_sum,
        updates=Updates(minibatches=2),
    )


PAPER = Paper(
    title="Back to Basics: Revisiting REINFORCE Style Optimization for Learning from Human "
    "Feedback in LLMs",
    use="An unbiased gradient, without clip and standard deviation.",
    tags=("advantage", "kl"),
    trl="RLOOTrainer, beta=0.03 (0.05 by default; it adds PPO's clip, of the answer's ratio)",
    verl="adv_estimator='rloo' (a lone rollout gets A = r, ours 0) or 'rloo_vectorized' (0)",
    checked=("golden", "properties", "reference", "run"),
    source=Source("third_party", "TRL's RLOOTrainer and its paper index, which quotes section C"),
    plan=(
        "section C as TRL's paper index quotes it: batches of 512, steps_per_generation 2: 2 "
        "updates per step"
    ),
    deviations=(
        "No ratio corrects the second update of a step; TRL's trainer has PPO's ratio and clip.",
    ),
    audit=(
        "arithmetic compared with TRL 1.16 and verl 0.9.1 (848 cases); group size, KL weight and "
        "number of updates compared with TRL's paper index"
    ),
    shown=("docs/claims.md#noisy",),
)
