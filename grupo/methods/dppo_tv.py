"""DPPO-TV: a trust region on probabilities, not on ratios. Qi et al., 2026, arXiv:2602.04879."""

import torch

from grupo.algo.advantages import Center
from grupo.algo.aggregation import ConstantLength
from grupo.algo.losses import WeightedReinforce
from grupo.algo.minibatches import Updates
from grupo.algo.ratios import CappedRatio, RatioTo
from grupo.core.batch import Batch, PerAction, Signals
from grupo.core.component import component
from grupo.core.numbers import NonNegative, NumberOrSchedule, Positive, PositiveInt
from grupo.core.paper import Paper, Source
from grupo.core.requires import Requires
from grupo.method import Method
from grupo.rollouts.samplers import GroupSampler


def dppo_tv(
    group_size: PositiveInt = 16,
    threshold_low: NonNegative = 0.15,
    threshold_high: NonNegative = 0.15,
    cap: Positive = 10_000.0,
    max_length: PositiveInt = 8192,
) -> Method:
    """A policy gradient without ratio clip, inside a trust region M of each token's binary TV.

    loss = mean over answers of 1 / max_length times the sum over tokens of
      -sg(min(r, cap) M) A log pi
    with A = R - mean(R), R the reward: Dr. GRPO's advantage and aggregation.

    M = p - q <= threshold_high where A > 0, p - q >= -threshold_low elsewhere, with p and q the
    token's probability under policy and sampler, and r = p / q.

    A step makes 8 updates, one on each of 8 minibatches.

    Args:
        group_size: rollouts per task (authors' script: 16).
        threshold_low: bound of q - p where A <= 0 (authors' script: 0.15).
        threshold_high: bound of p - q where A > 0 (authors' script: 0.15).
        cap: largest weight (authors' script: 10,000, so that it does not act).
        max_length: the constant, in tokens (authors' script: the generation limit, 8,192).
    """
    return Method(
        sampler=GroupSampler(group_size),
        advantage=Center(),
        loss=WeightedReinforce(BinaryTVTrustRegion(threshold_low, threshold_high, cap)),
        aggregation=ConstantLength(max_length),
        updates=Updates(minibatches=8),
    )


@component
class BinaryTVTrustRegion:
    """Weight min(r, cap) inside a trust region of |p - q|, 0 outside, (N, T).

    q is the sampler's probability, r = p / q. A token is inside if |p - q| is within its bound or
    if the gradient leads back towards q.

    Args:
        threshold_low: bound of q - p where A <= 0.
        threshold_high: bound of p - q where A > 0.
        cap: largest weight.
    """

    threshold_low: NumberOrSchedule = 0.15
    threshold_high: NumberOrSchedule = 0.15
    cap: Positive = 10_000.0

    requires = Requires(signals=("logp@sampler",))

    def __call__(self, pi: Signals, batch: Batch) -> PerAction:
        change = pi.logp.exp() - batch.signals["logp@sampler"].exp()
        trusted = torch.where(
            batch.advantage > 0, change <= self.threshold_high, change >= -self.threshold_low
        )
        return CappedRatio(self.cap, RatioTo("sampler"))(pi, batch) * trusted


PAPER = Paper(
    title="Rethinking the Trust Region in LLM Reinforcement Learning",
    use="Ratio clips restrict rare tokens and free common ones; engines disagree on rare ones.",
    tags=("clipping", "off-policy"),
    verl="loss_mode='dppo_tv' with rollout_correction.bypass_mode=True, so that its old policy is "
    "the sampler; norm_adv_by_std_in_grpo=False, loss_agg_mode='seq-mean-token-sum-norm' with a "
    "loss_scale_factor; its cap is clip_ratio_c, 3 in the actor's config and 10,000 in the script",
    checked=("golden", "properties", "reference", "run"),
    example="dppo_tv(max_length=64)",
    source=Source(
        "code",
        "verl-project/verl, examples/dppo_trainer/run_qwen30b_dppo.sh (by the authors); "
        "sail-sg/Stable-RL, verl/trainer/ppo/core_algos.py",
    ),
    plan="run_qwen30b_dppo.sh: train batch 256, minibatch 32 prompts: 8 updates per step",
    missing=(
        "The divergence of the k likeliest tokens (dppo_topk_tv and dppo_topk_kl of Stable-RL).",
        "A trust region around the recomputed old policy, an ablation of the release.",
    ),
    deviations=(
        "The constant is max_length; the script sets no loss_scale_factor, and verl then divides "
        "by the width of the padded answers.",
    ),
    audit=(
        "mask, thresholds, cap, advantage, aggregation, group and batch sizes compared with "
        "Stable-RL's mask function and the authors' script; arithmetic with verl 0.9.1"
    ),
    shown=("docs/claims.md#reuse",),
)
