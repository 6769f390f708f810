"""ASPO: positive tokens are weighted by the inverse ratio. Wang et al., 2025, arXiv:2510.06062."""

import torch

from grupo.algo import ratios
from grupo.algo.aggregation import token_mean
from grupo.algo.filters import keep_nonzero_std
from grupo.algo.losses import WeightedReinforce
from grupo.algo.minibatches import Updates
from grupo.core.batch import Batch, PerAction, Signals
from grupo.core.component import component
from grupo.core.numbers import NonNegative, Positive, PositiveInt
from grupo.core.paper import Paper, Source
from grupo.method import Method
from grupo.rollouts.samplers import GroupSampler


def aspo_ratio(
    group_size: PositiveInt = 16,
    clip_low: NonNegative = 0.2,
    clip_high: NonNegative = 0.2,
    cap: Positive = 3.0,
) -> Method:
    """loss = mean over all tokens of -sg(w) A log pi with w = r where A < 0 and 1 / r where A > 0.

    w is 0 where PPO's clip is active, and at most cap: a soft clip that keeps the gradient.
    A = (r - mean(r)) / std(r), and groups of equal rewards are dropped.

    A step makes 12 updates: 3 passes over 4 minibatches.

    Args:
        group_size: rollouts per task.
        clip_low: w is 0 where A < 0 and r < 1 - clip_low.
        clip_high: w is 0 where A > 0 and r > 1 + clip_high.
        cap: largest weight.
    """
    loss = WeightedReinforce(InverseRatioForPositive(clip_low, clip_high, cap))
    return Method(
        sampler=GroupSampler(group_size),
        filter=keep_nonzero_std,
        loss=loss,
        aggregation=token_mean,
        updates=Updates(epochs=3, minibatches=4),
    )


@component
class InverseRatioForPositive:
    """min(w, cap) with w = r where A < 0, 1 / r elsewhere, and 0 where PPO's clip is active.

    Args:
        clip_low: w is 0 where A < 0 and r < 1 - clip_low.
        clip_high: w is 0 elsewhere if r > 1 + clip_high.
        cap: largest weight.
    """

    clip_low: NonNegative = 0.2
    clip_high: NonNegative = 0.2
    cap: Positive = 3.0

    def __call__(self, pi: Signals, batch: Batch) -> PerAction:
        r = ratios.token(pi, batch)
        negative = torch.where(r >= 1 - self.clip_low, r, 0.0)
        positive = torch.where(r <= 1 + self.clip_high, 1 / r, 0.0)
        return torch.where(batch.advantage < 0, negative, positive).clamp(max=self.cap)


PAPER = Paper(
    title="ASPO: Asymmetric Importance Sampling Policy Optimization",
    use="Entropy collapses because tokens that are both likely and good get the largest updates.",
    tags=("importance-sampling", "clipping", "entropy"),
    equals_grpo_when="there is one update per step",
    checked=("golden", "properties", "reference", "run"),
    source=Source(
        "code",
        "wizard-III/Archer2.0, verl/trainer/ppo/core_algos.py and "
        "scripts/train/run_archer2.0_qwen2.5_1.5b_math.sh",
    ),
    plan=(
        "run_archer2.0_qwen2.5_1.5b_math.sh: train batch 64, minibatch 16 prompts, 3 epochs: 12 "
        "updates per step, fewer where groups are dropped"
    ),
    missing=("An overlong penalty over the last 16 tokens.",),
    deviations=(
        "The release drops groups whose rewards are all 0 or all 1, penalty included; other "
        "groups of equal rewards stay, with A = 0.",
        (
            "Archer's part of the script is left out: the clip of 0.4 for tokens of high entropy, "
            "and a k3 penalty of 0.001."
        ),
        (
            "Dropped groups leave smaller minibatches here, in the release fewer minibatches of 16 "
            "prompts."
        ),
        (
            "The mean is over the tokens of a minibatch; the script's micro-batches have one answer"
            " each, so that its token mean is a mean of row means."
        ),
    ),
    audit=(
        "weights, masks and the cap of 3 compared with compute_policy_loss_archer, the dropped "
        "groups with dapo/dapo_ray_trainer.py, batch sizes with the run script"
    ),
    shown=("docs/claims.md#reuse",),
)
