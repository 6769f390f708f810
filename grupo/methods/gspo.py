"""GSPO: ratio and clip per sequence. Zheng et al., 2025, arXiv:2507.18071."""

from grupo.algo import ratios
from grupo.algo.losses import Clip
from grupo.algo.minibatches import Updates
from grupo.core.numbers import NonNegative, PositiveInt
from grupo.core.paper import Paper, Source
from grupo.method import Method
from grupo.rollouts.samplers import GroupSampler


def gspo(
    group_size: PositiveInt = 8, clip_low: NonNegative = 3e-4, clip_high: NonNegative = 4e-4
) -> Method:
    """loss = mean over answers of -min(s A, clip(s, 1 - clip_low, 1 + clip_high) A) (eq. 5).

    s = (pi(answer) / old(answer))^(1 / length), the geometric mean of its token ratios; A = (r -
    mean(r)) / std(r).

    A step has 4 updates, each on a minibatch of its groups.

    Args:
        group_size: rollouts per task (our choice).
        clip_low: s is clipped below at 1 - clip_low (paper: 0.0003).
        clip_high: s is clipped above at 1 + clip_high (paper: 0.0004).
    """
    # In the first minibatch of a step s is 1.
    return Method(
        sampler=GroupSampler(group_size),
        loss=Clip(clip_low, clip_high, ratios.sequence),
        updates=Updates(minibatches=4),
    )


PAPER = Paper(
    title="Group Sequence Policy Optimization",
    use="Several updates a step make token ratios noisy, above all with mixtures of experts.",
    tags=("importance-sampling", "clipping"),
    equals_grpo_when="there is one update per step",
    trl="importance_sampling_level='sequence', loss_type='grpo', epsilon=3e-4, epsilon_high=4e-4",
    verl="loss_mode='gspo': the tokenwise form (ours: gspo_token)",
    checked=("golden", "properties", "reference", "run"),
    source=Source("paper", "eq. 5, and section 5.1 as quoted in TRL's index of papers"),
    plan=(
        "section 5.1 as quoted in TRL's index of papers: a rollout batch is split into four"
        " minibatches"
    ),
    deviations=("group_size is our choice, 8: the paper's was in no source.",),
    audit=(
        "clips, the absence of a KL divergence and plan compared with TRL's index of papers; "
        "arithmetic compared with TRL 1.16 in an earlier audit (848 cases over all methods)"
    ),
    shown=("docs/claims.md#reuse",),
)
