"""Reinforce-Rej: drops all-right and all-wrong groups. Xiong et al., 2025, arXiv:2504.11343."""

from grupo.algo.advantages import SignAdvantage
from grupo.algo.filters import keep_nonzero_std
from grupo.algo.losses import Clip
from grupo.algo.minibatches import Updates
from grupo.core.numbers import NonNegative, PositiveInt
from grupo.core.paper import Paper, Source
from grupo.method import Method
from grupo.rollouts.samplers import GroupSampler


def reinforce_rej(group_size: PositiveInt = 4, clip_eps: NonNegative = 0.2) -> Method:
    """A = 1 for a correct answer, -1 for a wrong one, in groups that have both (eq. 5).

    loss = mean over answers of mean over tokens of
      -min(R A, clip(R, 1 - clip_eps, 1 + clip_eps) A).

    A step makes 4 updates, one on each of 4 minibatches.

    Args:
        group_size: rollouts per task (authors' script: 4).
        clip_eps: ratios are clipped to [1 - clip_eps, 1 + clip_eps].
    """
    return Method(
        sampler=GroupSampler(group_size),
        filter=keep_nonzero_std,
        advantage=SignAdvantage(1.0),
        loss=Clip(clip_eps, clip_eps),
        updates=Updates(minibatches=4),
    )


PAPER = Paper(
    title="A Minimalist Approach to LLM Reasoning: from Rejection Sampling to Reinforce",
    use="To test whether selecting groups, not scaling rewards, is what makes GRPO work.",
    tags=("filtering", "advantage"),
    checked=("golden", "properties", "run"),
    source=Source(
        "code",
        (
            "RLHFlow/Minimal-RL, scripts/run_reinforce_rej.sh and verl/trainer/ppo/core_algos.py; "
            "eq. 5"
        ),
    ),
    plan="run_reinforce_rej.sh: train batch 1024, minibatch 256: 4 updates per step",
    missing=(
        (
            "The KL loss of 0.001 (k3) of the script, and verl's entropy bonus of 0.001 and dual "
            "clip of 3."
        ),
    ),
    deviations=(
        (
            "Groups of equal rewards are dropped and answers count equally; the code keeps them "
            "with advantage 0 and averages over all tokens, those included."
        ),
        (
            "Wrong answers have A = -1, as in eq. 5; the released advantage is the reward, and its "
            "rewards are 1 and 0, so that wrong answers have A = 0 there."
        ),
    ),
    audit="advantage, clip and batch sizes compared with core_algos.py and run_reinforce_rej.sh",
)
