"""Single-stream PO: one rollout against its task's history. Xu and Ding, 2025, arXiv:2509.13232."""

from torch import Tensor

from grupo.algo.advantages import StandardiseBatch, chain
from grupo.algo.aggregation import token_mean
from grupo.algo.losses import Clip
from grupo.algo.minibatches import Updates
from grupo.core.batch import Batch
from grupo.core.component import component
from grupo.core.numbers import NonNegative, PositiveInt
from grupo.core.paper import Paper, Source
from grupo.core.ranges import Probability
from grupo.core.requires import Requires
from grupo.method import Method
from grupo.rollouts.curricula import BetaCounts, UncertaintyWeighted, beta_mean
from grupo.rollouts.samplers import GroupSampler


def spo_single_stream(
    group_size: PositiveInt = 1,
    decay: Probability = 0.875,
    clip_low: NonNegative = 0.2,
    clip_high: NonNegative = 0.28,
) -> Method:
    """A = whitened r - v, r in [0, 1]; v is the mean of a Beta distribution that each reward
    updates.

    A step makes 8 updates, one on each of 8 minibatches.

    Args:
        group_size: rollouts per task.
        decay: factor on the counts of the Beta at each new reward.
        clip_low: ratios are clipped below at 1 - clip_low.
        clip_high: ratios are clipped above at 1 + clip_high.
    """
    return Method(
        curriculum=UncertaintyWeighted(decay),
        sampler=GroupSampler(group_size),
        advantage=chain(SubtractBetaMean(decay), StandardiseBatch()),
        loss=Clip(clip_low, clip_high),
        aggregation=token_mean,
        updates=Updates(minibatches=8),
    )


@component
class SubtractBetaMean:
    """r - v, v by `beta_mean` of the task's history.

    Args:
        decay: factor on the counts of the Beta at each new reward.
    """

    decay: Probability

    @property
    def requires(self) -> Requires:
        return Requires(task_statistics=(BetaCounts(self.decay),), reward_range=(0.0, 1.0))

    def __call__(self, x: Tensor, batch: Batch) -> Tensor:
        values = [beta_mean(history, self.decay) for history in batch.history]
        return x - x.new_tensor(values)[batch.group]


PAPER = Paper(
    title="Single-stream Policy Optimization",
    use="A second rollout of a task is too expensive, and tasks recur.",
    tags=("advantage", "curriculum"),
    verl="the recipe spo of verl-recipe; forgets by the measured change of log-probabilities",
    checked=("golden", "properties", "reference", "run"),
    catalogue=("spo-single-stream",),
    source=Source(
        "code",
        (
            "verl-project/verl-recipe, spo/spo_ray_trainer.py, spo/config/spo_trainer.yaml and "
            "spo/train.sh"
        ),
    ),
    plan="spo/train.sh: train batch 1024, minibatch 128: 8 updates per step",
    missing=(
        "The start of the Beta distributions from 8 recorded rollouts of each task.",
        "The dual clip of 10 of the script.",
        "The tools of the script, for up to 8 turns, and its reward of 0 for an answer without "
        "exactly one </think>.",
    ),
    deviations=(
        "With fewer tasks than prompts a step has fewer; the release draws with replacement.",
        (
            "The decay is a constant, the lower bound of the code's: there it is 2^(-D / 0.06), "
            "clamped to [0.875, 0.96], D the change of log-probability of the task's last "
            "rollout."
        ),
    ),
    audit=(
        "baseline, its update, whitening, task weights, clip and batch sizes compared with "
        "spo_ray_trainer.py and train.sh"
    ),
    shown=("docs/claims.md#difficulty",),
)
