"""RLPR: the reference answer's likelihood is the reward. Yu et al., 2025, arXiv:2506.18254."""

from collections.abc import Sequence
from statistics import stdev

from torch import Tensor

from grupo.algo.advantages import Center, ScaleByStd, chain
from grupo.algo.aggregation import token_mean
from grupo.algo.losses import Clip
from grupo.algo.minibatches import Updates
from grupo.core.batch import Batch
from grupo.core.component import component
from grupo.core.numbers import NonNegative, NumberOrSchedule, PositiveInt
from grupo.core.paper import Paper, Source
from grupo.core.requires import Requires
from grupo.core.types import Group
from grupo.method import Method
from grupo.rollouts.samplers import GroupSampler


def rlpr(
    group_size: PositiveInt = 8,
    clip_low: NonNegative = 0.2,
    clip_high: NonNegative = 0.27,
    min_std: NonNegative = 0.05,
) -> Method:
    """A = (r - mean(r)) / std(r), r = clip(p - p0, 0, 1), over groups with std(r) >= min_std.

    p is the mean probability of the reference answer's tokens after the reasoning, by the policy
    before the update; p0 is that without the reasoning, once, by the policy before training.

    A step makes 4 updates, one on each of 4 minibatches.

    Args:
        group_size: rollouts per task (authors' script: 8).
        clip_low: ratios are clipped below at 1 - clip_low (authors' script: 0.2).
        clip_high: ratios are clipped above at 1 + clip_high (authors' script: 0.27).
        min_std: smallest standard deviation of a group (our choice).
    """
    return Method(
        sampler=GroupSampler(group_size),
        filter=KeepMinStd(min_std),
        advantage=chain(DebiasedProbability(), Center(), ScaleByStd()),
        loss=Clip(clip_low, clip_high),
        aggregation=token_mean,
        updates=Updates(minibatches=4),
    )


WITH_REASONING = "answer_probability"


WITHOUT_REASONING = "answer_probability_alone"


REQUIRES_PROBABILITIES = Requires(reward_terms=(WITH_REASONING, WITHOUT_REASONING))


@component
class DebiasedProbability:
    """clip(p - p0, 0, 1): the gain in likelihood of the reference answer from the reasoning."""

    requires = REQUIRES_PROBABILITIES

    def __call__(self, x: Tensor, batch: Batch) -> Tensor:
        return (batch.reward_terms[WITH_REASONING] - batch.reward_terms[WITHOUT_REASONING]).clamp(
            0, 1
        )


@component
class KeepMinStd:
    """Keeps groups whose debiased rewards have a standard deviation of at least min_std.

    The standard deviation is by n - 1, and 0 for a lone rollout.

    Args:
        min_std: smallest standard deviation.
    """

    min_std: NumberOrSchedule

    requires = REQUIRES_PROBABILITIES

    def __call__(self, groups: Sequence[Group]) -> Sequence[Group]:
        return [group for group in groups if self._std(group) >= self.min_std]

    def _std(self, group: Group) -> float:
        rewards = self._debiased(group)
        return stdev(rewards) if len(rewards) > 1 else 0.0

    def _debiased(self, group: Group) -> list[float]:
        return [
            min(1.0, max(0.0, r.reward_terms[WITH_REASONING] - r.reward_terms[WITHOUT_REASONING]))
            for r in group.rollouts
        ]


PAPER = Paper(
    title="RLPR: Extrapolating RLVR to General Domains without Verifiers",
    use="Reference answers exist, but no verifier can compare free-form answers with them.",
    tags=("reward", "filtering"),
    checked=("golden", "properties", "run"),
    source=Source(
        "code",
        (
            "OpenBMB/RLPR, examples/RLPR/reproduce_qwen.sh, verl/workers/reward_manager/prob.py, "
            "verl/trainer/ppo/ray_trainer.py and core_algos.py"
        ),
    ),
    plan="reproduce_qwen.sh: train batch 768, minibatch 192: 4 updates per step",
    missing=(
        "The reward of 0.9 times this one plus 0.1 times the format, and the repetition penalty.",
        "verl's entropy bonus of 0.001, which the script leaves on (ppo_trainer.yaml).",
        "The moving threshold: half of a moving average (0.99) of std(r), used from step 11 on.",
        "Further tasks are generated until the batch of 768 groups is full; tasks of surplus groups"
        " are generated anew in a later step (filter_cache_regenerate).",
    ),
    deviations=(
        "The threshold of std(r) is a constant, our choice.",
        "std(r) of a lone rollout is 0 in the filter; the code has 1.",
        "p0 is a column of the training data in the release (scoreA), 0 where it is missing.",
        "The filter reads the debiased reward, in the release the whole one, with format and"
        " repetition penalty.",
        "The mean is over the tokens of a minibatch, in the release over those of a micro-batch,"
        " which is weighted by its number of answers.",
        "The fork does not clamp the log-ratio, nor does the method.",
    ),
    audit=(
        "reward, clip, filter (torch.std, core_algos.py:152) and batch sizes compared with "
        "prob.py, ray_trainer.py and reproduce_qwen.sh"
    ),
)
