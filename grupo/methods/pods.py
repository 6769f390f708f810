"""PODS: samples many and trains on the most diverse. Xu et al., 2025, arXiv:2504.13818."""

from grupo.algo.filters import KeepMaxVariance
from grupo.algo.losses import Clip
from grupo.core.numbers import NonNegative, PositiveInt
from grupo.core.paper import Paper, Source
from grupo.method import Method
from grupo.rollouts.samplers import GroupSampler


def pods(
    group_size: PositiveInt = 64, num_kept: PositiveInt = 16, clip_eps: NonNegative = 0.2
) -> Method:
    """GRPO on the num_kept rollouts of each group whose rewards have the greatest variance.

    They are the k highest and the num_kept - k lowest for some k (theorem 1); A = (r - mean(r)) /
    std(r) with mean and std of those that are kept.

    Args:
        group_size: rollouts per task (authors' runs on one GPU: 64).
        num_kept: rollouts of a group that are trained on (authors' runs on one GPU: 16).
        clip_eps: ratios are clipped to [1 - clip_eps, 1 + clip_eps] (our choice).
    """
    return Method(
        sampler=GroupSampler(group_size),
        filter=KeepMaxVariance(num_kept),
        loss=Clip(clip_eps, clip_eps),
    )


PAPER = Paper(
    title="Not All Rollouts are Useful: Down-Sampling Rollouts in LLM Reinforcement Learning",
    use="Rollouts are cheap to sample in parallel; updates take the memory and the time.",
    tags=("filtering",),
    checked=("golden", "properties", "run"),
    source=Source(
        "code",
        "YixuanEvenXu/pods: open-r1/src/open_r1/grpo_trainer.py, open-r1/exp.sh and "
        "scripts/plot.py",
    ),
    plan=(
        "one update per step: exp.sh leaves num_iterations at 1 and generates once per "
        "accumulated batch"
    ),
    missing=(
        (
            "The other rules of down-sampling that the paper compares: random, best rewards, "
            "percentiles."
        ),
        "The reward of config_pods.yaml, the sum of accuracy, format and count of tags.",
        "The temperature of 0.9 of both trainers.",
    ),
    deviations=(
        "group_size 64 and num_kept 16 are those of the runs that scripts/plot.py names; exp.sh "
        "has 128 and 32.",
        (
            "The mean is over answers, as in trainer/maxvargrpo_trainer.py of the release; its "
            "grpo_trainer.py leaves TRL's loss type at its default then, bnpo, the mean over the "
            "tokens of a micro-batch."
        ),
        "1e-6 is added to the standard deviation, in the release 1e-4.",
    ),
    audit=(
        "selection and the statistics over the kept rollouts compared with grpo_trainer.py;"
        " beta 0 with config_pods.yaml, 64 and 16 with plot.py"
    ),
    shown=("docs/claims.md#difficulty",),
)
