"""W-REINFORCE: failures count ten times a success. Zhu et al., 2025, arXiv:2506.01347."""

from grupo.algo.advantages import SignAdvantage
from grupo.algo.aggregation import token_mean
from grupo.algo.losses import Clip
from grupo.algo.minibatches import Updates
from grupo.core.numbers import NonNegative, PositiveInt
from grupo.core.paper import Paper, Source
from grupo.method import Method
from grupo.rollouts.samplers import GroupSampler


def w_reinforce(
    group_size: PositiveInt = 8, positive_advantage: NonNegative = 0.1, clip_eps: NonNegative = 0.2
) -> Method:
    """A = positive_advantage for a correct answer, -1 for a wrong one.

    loss = mean over tokens of -min(R A, clip(R, 1 - clip_eps, 1 + clip_eps) A). positive_advantage
    = 1 is plain REINFORCE; negative reinforcement alone is `nsr`.

    A step makes 4 updates, one on each of 4 minibatches.

    Args:
        group_size: rollouts per task (authors' script: 8).
        positive_advantage: advantage of a correct answer (lambda in the paper) (paper: 0.1).
        clip_eps: ratios are clipped to [1 - clip_eps, 1 + clip_eps].
    """
    return Method(
        sampler=GroupSampler(group_size),
        advantage=SignAdvantage(positive_advantage),
        loss=Clip(clip_eps, clip_eps),
        aggregation=token_mean,
        updates=Updates(minibatches=4),
    )


PAPER = Paper(
    title="The Surprising Effectiveness of Negative Reinforcement in LLM Reasoning",
    use="Pass@1 should rise without loss of pass@k at large k.",
    tags=("exploration", "advantage"),
    checked=("golden", "properties", "reference", "run"),
    source=Source(
        "code",
        (
            "TianHongZXY/RLVR-Decomposed, verl/trainer/ppo/core_algos.py and "
            "run_qwen2.5-math-7b_psr_nsr.sh"
        ),
    ),
    plan="run_qwen2.5-math-7b_psr_nsr.sh: train batch 1024, minibatch 256: 4 updates per step",
    missing=("verl's entropy bonus of 0.001, which the script leaves on.",),
    deviations=(
        "The mean is over the tokens of a minibatch. The release takes it in each micro-batch, and"
        " weighs that by its share of the rows.",
    ),
    audit=(
        "advantage (option weighted), loss, constants and batch sizes compared with "
        "compute_psr_nsr_outcome_advantage and the script, which runs the option positive"
    ),
    shown=("docs/claims.md#modes",),
)
