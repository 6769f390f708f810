"""NSR: trains on wrong answers only. Zhu et al., 2025, arXiv:2506.01347."""

from collections.abc import Sequence
from dataclasses import replace

from grupo.algo.advantages import SignAdvantage
from grupo.algo.aggregation import token_mean
from grupo.algo.losses import Clip
from grupo.algo.minibatches import Updates
from grupo.core.numbers import NonNegative, PositiveInt
from grupo.core.paper import Paper, Source
from grupo.core.types import Group
from grupo.method import Method
from grupo.rollouts.samplers import GroupSampler


def nsr(group_size: PositiveInt = 8, clip_eps: NonNegative = 0.2) -> Method:
    """A = -1 for a wrong answer, and correct ones are dropped: negative sample reinforcement.

    loss = mean over the tokens of wrong answers of
      -min(R A, clip(R, 1 - clip_eps, 1 + clip_eps) A).

    A step has at most 4 updates, each on a minibatch of its groups.

    Args:
        group_size: rollouts per task (authors' script: 8).
        clip_eps: ratios are clipped to [1 - clip_eps, 1 + clip_eps].
    """
    return Method(
        sampler=GroupSampler(group_size),
        filter=keep_wrong_rollouts,
        advantage=SignAdvantage(0.0),
        loss=Clip(clip_eps, clip_eps),
        aggregation=token_mean,
        updates=Updates(minibatches=4),
    )


def keep_wrong_rollouts(groups: Sequence[Group]) -> Sequence[Group]:
    """Keep the rollouts whose reward is not above 0; groups without one are dropped.

    >>> from grupo.core.types import Rollout, Task
    >>> group = Group(Task("k", "?"), (Rollout(reward=1.0), Rollout(reward=0.0)))
    >>> keep_wrong_rollouts([group])[0].rewards
    (0.0,)
    """
    wrong = [replace(g, rollouts=tuple(r for r in g.rollouts if r.reward <= 0)) for g in groups]
    return [group for group in wrong if group.rollouts]


PAPER = Paper(
    title="The Surprising Effectiveness of Negative Reinforcement in LLM Reasoning",
    use="The policy already solves the tasks and must not lose its other ways to do so.",
    tags=("exploration", "filtering"),
    checked=("golden", "properties", "reference", "run"),
    source=Source(
        "code",
        "TianHongZXY/RLVR-Decomposed: verl/trainer/ppo/ray_trainer.py, "
        "compute_psr_nsr_outcome_advantage in core_algos.py, run_qwen2.5-math-7b_psr_nsr.sh",
    ),
    plan=(
        "run_qwen2.5-math-7b_psr_nsr.sh: 1,024 prompts with 8 rollouts per step, "
        "minibatches of 2,048 of the wrong rollouts that are kept, at most 4 updates"
    ),
    missing=("The framework's entropy bonus of 0.001, which the script leaves on.",),
    deviations=(
        (
            "A step has 4 updates if it has 4 groups: the release has fewer the more rollouts "
            "are correct."
        ),
        (
            "The mean is over the tokens of a minibatch, in the release of a micro-batch of at "
            "most 48,000 tokens. A last minibatch of fewer rollouts weighs less there."
        ),
        "The release drops rollouts until their number is a multiple of its 8 devices.",
        "The fork does not clamp the log-ratio, nor does the method.",
    ),
    audit=(
        "advantage, selection of wrong rollouts before the update, token mean over these, "
        "group size and plan compared with the trainer and the run script"
    ),
    shown=("docs/claims.md#modes",),
)
