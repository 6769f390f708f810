"""Skywork-OR1: an entropy bonus only at low entropy. He et al., 2025, arXiv:2505.22312."""

from grupo.algo.aggregation import token_mean
from grupo.algo.filters import keep_nonzero_std
from grupo.algo.losses import Clip
from grupo.algo.losses.regularizers import EntropyBonus
from grupo.core.controllers import TargetEntropy
from grupo.core.numbers import NonNegative, PositiveInt
from grupo.core.paper import Paper, Source
from grupo.method import Method
from grupo.rollouts.samplers import GroupSampler


def skywork_or1(
    group_size: PositiveInt = 16,
    clip_eps: NonNegative = 0.2,
    target_entropy: NonNegative = 0.2,
    entropy_coef_step: NonNegative = 0.005,
) -> Method:
    """loss = mean over all tokens of -min(R A, clip(R, 1 -+ clip_eps) A) - a_k H, no KL.

    a_k = c_k where the entropy is at most target_entropy, else 0. c_k starts at 0, rises by
    entropy_coef_step after a step below the target and falls by it after one above. Groups of equal
    rewards are dropped.

    Args:
        group_size: rollouts per task.
        clip_eps: ratios are clipped to [1 - clip_eps, 1 + clip_eps].
        target_entropy: entropy, in nats, up to which the bonus is on.
        entropy_coef_step: change of c_k per step.
    """
    # Truncated answers keep their 0; temperature 1 is a choice of a recipe.
    bonus = EntropyBonus(TargetEntropy(target_entropy, entropy_coef_step))
    return Method(
        sampler=GroupSampler(group_size),
        filter=keep_nonzero_std,
        loss=Clip(clip_eps, clip_eps) + bonus,
        aggregation=token_mean,
    )


PAPER = Paper(
    title="Skywork Open Reasoner 1 Technical Report",
    use="A model with long reasoning loses its entropy early in training and stops improving.",
    tags=("entropy", "filtering"),
    checked=("golden", "properties", "run"),
    source=Source(
        "code",
        (
            "SkyworkAI/Skywork-OR1, or1_scripts/train/7b_8k.sh, 32b_16k.sh and "
            "verl/trainer/ppo/core_algos.py"
        ),
    ),
    plan="7b_8k.sh and 32b_16k.sh: rollout batch 256, minibatch 256: one update per step",
    missing=(
        "The stages of growing length limits.",
        "The removal of prompts that the model always solves, which reviews of the report name.",
    ),
    deviations=(
        (
            "c_k changes by 0.005 a step and has no cap, as in the report; the scripts have "
            "0.0001 and a cap of 0.005."
        ),
        "The mean is over the tokens of the groups that are kept. The release averages over the"
        " tokens of a micro-batch and weights it by its number of answers over that of the whole"
        " batch, so that dropped groups make the update smaller.",
        "The release drops answers until their number is a multiple of the number of GPUs, before"
        " groups are centred.",
        "At an entropy exactly on target c_k rises; in the release it falls.",
        "The release measures the entropy by minus the mean log-probability of the sampled tokens.",
    ),
    audit=(
        "controller, target entropy, group size and batch sizes compared with EntController in "
        "core_algos.py and the scripts"
    ),
    shown=("docs/claims.md#modes",),
)
