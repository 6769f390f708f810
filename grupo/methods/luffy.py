"""LUFFY: every group holds an expert rollout. Yan et al., 2025, arXiv:2504.14945."""

from grupo.algo.advantages import Center
from grupo.algo.aggregation import ConstantLength
from grupo.algo.losses import Clip, PolicyShaping, SelectBySource
from grupo.algo.minibatches import Updates
from grupo.core.numbers import NonNegative, PositiveInt
from grupo.core.paper import Paper, Source
from grupo.method import Method
from grupo.rollouts.samplers import GroupSampler, WithExpertSolution


def luffy(
    max_length: PositiveInt,
    group_size: PositiveInt = 7,
    shaping_constant: NonNegative = 0.1,
    clip_eps: NonNegative = 0.2,
) -> Method:
    """Dr. GRPO on sampled and expert rollouts together; expert tokens have f(pi) in place of a
    ratio.

    The advantage A = r - mean(r) is over both. loss = mean over rollouts of the sum over tokens,
    divided by max_length, of
      -min(R A, clip(R, 1 - clip_eps, 1 + clip_eps) A) for sampled tokens, -f(pi) A for others,
    f(p) = p / (p + shaping_constant). The task's solution is the expert rollout.

    A step has 2 updates, each on a minibatch of its groups.

    Args:
        max_length: length limit of an answer, in tokens.
        group_size: sampled rollouts per task, beside one of the expert (authors' script: 8
            together).
        shaping_constant: the constant in f (paper: 0.1).
        clip_eps: ratios are clipped to [1 - clip_eps, 1 + clip_eps].
    """
    return Method(
        sampler=WithExpertSolution(GroupSampler(group_size)),
        advantage=Center(),
        loss=SelectBySource(Clip(clip_eps, clip_eps), PolicyShaping(shaping_constant)),
        aggregation=ConstantLength(max_length),
        updates=Updates(minibatches=2),
    )


PAPER = Paper(
    title="Learning to Reason under Off-Policy Guidance",
    use="The policy rarely succeeds, and solutions of a stronger model are available.",
    tags=("off-policy", "sft"),
    checked=("golden", "properties", "reference", "run"),
    example="luffy(max_length=64)",
    source=Source("code", "ElliottYan/LUFFY: exp_scripts/train.sh and luffy/verl/verl/mix_src"),
    plan="exp_scripts/train.sh: 128 prompts per step in minibatches of 64, 2 updates",
    missing=(
        "The entropy bonus of 0.001 in the script.",
        "Partial expert prefixes (prefix ratios below 1).",
    ),
    deviations=(
        (
            "PPO's clip is kept, as in the paper: the script removes it (loss_remove_clip), "
            "which differs in the second update of a step."
        ),
        (
            "A = r - mean(r) is over sampled and expert rollouts: one variant of the code "
            "centres on the sampled ones alone (grpo_split)."
        ),
        (
            "The mean is over rollouts: the release sums the rows of a micro-batch, which changes "
            "the scale of the gradient alone."
        ),
    ),
    audit=(
        "shaping constant, advantage without standard deviation, constant length, group and"
        " plan compared with train.sh and mix_trainer.py"
    ),
    shown=("docs/guidance_shown/hard_sums.md#results",),
)
