"""Dr. GRPO: GRPO without its two normalisations. Liu et al., 2025, arXiv:2503.20783."""

from grupo.algo.advantages import Center
from grupo.algo.aggregation import ConstantLength
from grupo.algo.losses import Clip
from grupo.algo.minibatches import Updates
from grupo.core.numbers import NonNegative, PositiveInt
from grupo.core.paper import Paper, Source
from grupo.method import Method
from grupo.rollouts.samplers import GroupSampler


def dr_grpo(
    max_length: PositiveInt, group_size: PositiveInt = 8, clip_eps: NonNegative = 0.2
) -> Method:
    """A = r - mean(r), and token sums over one constant: no bias by length or by difficulty.

    loss = mean over answers of 1 / max_length times the sum over tokens of
      -min(R A, clip(R, 1 - clip_eps, 1 + clip_eps) A)
    with R = pi / old (section 3.2).

    A step makes 8 updates, one on each of 8 minibatches.

    Args:
        max_length: the constant, in tokens (listing 1: the generation limit).
        group_size: rollouts per task (authors' script: 8).
        clip_eps: ratios are clipped to [1 - clip_eps, 1 + clip_eps].
    """
    return Method(
        sampler=GroupSampler(group_size),
        advantage=Center(),
        loss=Clip(clip_eps, clip_eps),
        aggregation=ConstantLength(max_length),
        updates=Updates(minibatches=8),
    )


PAPER = Paper(
    title="Understanding R1-Zero-Like Training: A Critical Perspective",
    use="Answers get longer without getting better, or very easy and hard tasks dominate.",
    tags=("advantage", "aggregation", "length"),
    trl="loss_type='dr_grpo', scale_rewards='none' (the constant is max_completion_length)",
    verl="norm_adv_by_std_in_grpo=False, loss_agg_mode='seq-mean-token-sum-norm' with a "
    "loss_scale_factor (without one it divides by the padded width)",
    checked=("golden", "properties", "reference", "run"),
    example="dr_grpo(max_length=64)",
    source=Source(
        "code",
        "section 3.2 and listing 1 of the paper; sail-sg/understand-r1-zero, "
        "examples/qwen2.5-math-7b.sh",
    ),
    plan=(
        "examples/qwen2.5-math-7b.sh: 128 prompts of 8 answers, train batch 128 answers, 1 epoch: "
        "8 updates per step"
    ),
    missing=("The reward 0 of an answer without an end token, as in train_zero_math.py.",),
    deviations=(
        "A minibatch holds whole groups; the learner of sail-sg/oat shuffles answers into them.",
    ),
    audit=(
        "arithmetic compared with TRL 1.16 and verl 0.9.1; group and batch sizes with the scripts "
        "and with the learner of sail-sg/oat"
    ),
    shown=("docs/claims.md#padded",),
)
