"""DPPO-KL: a trust region on each token's binary KL. Qi et al., 2026, arXiv:2602.04879."""

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


def dppo_kl(
    group_size: PositiveInt = 16,
    threshold_low: NonNegative = 0.05,
    threshold_high: NonNegative = 0.05,
    cap: Positive = 10_000.0,
    max_length: PositiveInt = 8192,
) -> Method:
    """A policy gradient without ratio clip, inside a trust region M of each token's binary KL.

    loss = mean over answers of 1 / max_length times the sum over tokens of
      -sg(min(r, cap) M) A log pi
    with A = R - mean(R), R the reward: Dr. GRPO's advantage and aggregation.

    M = k <= threshold_high or p <= q where A > 0, k <= threshold_low or p >= q elsewhere, with
    k = q log(q / p) + (1 - q) log((1 - q) / (1 - p)) and r = p / q.

    A step makes 8 updates, one on each of 8 minibatches.

    Args:
        group_size: rollouts per task (authors' script: 16).
        threshold_low: bound of k where A <= 0, in nats (authors' script: 0.05).
        threshold_high: bound of k where A > 0, in nats (authors' script: 0.05).
        cap: largest weight (authors' script: 10,000, so that it does not act).
        max_length: the constant, in tokens (authors' script: the generation limit, 8,192).
    """
    return Method(
        sampler=GroupSampler(group_size),
        advantage=Center(),
        loss=WeightedReinforce(BinaryKLTrustRegion(threshold_low, threshold_high, cap)),
        aggregation=ConstantLength(max_length),
        updates=Updates(minibatches=8),
    )


EPS = 1e-8  # authors' value; it keeps the KL finite for a token of probability 1


@component
class BinaryKLTrustRegion:
    """Weight min(r, cap) inside a trust region of the binary KL, 0 outside, (N, T).

    k = KL(q, p) of "this token or another", q the sampler's probability, r = p / q. A token is
    inside if k is within its bound or if the gradient leads back towards q.

    Args:
        threshold_low: bound of k where A <= 0, in nats.
        threshold_high: bound of k where A > 0, in nats.
        cap: largest weight.
    """

    threshold_low: NumberOrSchedule = 0.05
    threshold_high: NumberOrSchedule = 0.05
    cap: Positive = 10_000.0

    requires = Requires(signals=("logp@sampler",))

    def __call__(self, pi: Signals, batch: Batch) -> PerAction:
        logp = pi.logp.masked_fill(~batch.mask, -1.0)
        logq = batch.signals["logp@sampler"].masked_fill(~batch.mask, -1.0)
        p = logp.exp()
        q = logq.exp()
        k = q * (logq - logp) + (1 - q) * ((1 - q + EPS) / (1 - p + EPS)).log()
        may_increase = (k <= self.threshold_high) | (p <= q)
        may_decrease = (k <= self.threshold_low) | (p >= q)
        trusted = torch.where(batch.advantage > 0, may_increase, may_decrease)
        return CappedRatio(self.cap, RatioTo("sampler"))(pi, batch) * trusted


PAPER = Paper(
    title="Rethinking the Trust Region in LLM Reinforcement Learning",
    use="As dppo_tv, where changes near probability 0 and 1 should count more.",
    tags=("clipping", "off-policy"),
    verl="loss_mode='dppo_kl' with rollout_correction.bypass_mode=True, so that its old policy is "
    "the sampler; norm_adv_by_std_in_grpo=False, loss_agg_mode='seq-mean-token-sum-norm' with a "
    "loss_scale_factor; its cap is clip_ratio_c, 3 in the actor's config and 10,000 in the script",
    checked=("golden", "properties", "reference", "run"),
    example="dppo_kl(max_length=64)",
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
