"""DPPO-KL: a trust region on each token's binary KL. Qi et al., 2026, arXiv:2602.04879."""

import torch

from grupo.algo.aggregation import token_mean
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
    cap: Positive = 20.0,
) -> Method:
    """loss = mean over all tokens of -sg(min(r, cap) M) A log pi, M the binary KL trust region.

    M = k <= threshold_high or p <= q where A > 0, k <= threshold_low or p >= q elsewhere, with
    k = q log(q / p) + (1 - q) log((1 - q) / (1 - p)) and r = p / q. A = (r - mean(r)) / std(r).

    A step makes 8 updates, one on each of 8 minibatches.

    Args:
        group_size: rollouts per task (authors' script: 16).
        threshold_low: bound of k where A <= 0, in nats (authors' script: 0.05).
        threshold_high: bound of k where A > 0, in nats (authors' script: 0.05).
        cap: largest weight (verl's documented default: 20).
    """
    return Method(
        sampler=GroupSampler(group_size),
        loss=WeightedReinforce(BinaryKLTrustRegion(threshold_low, threshold_high, cap)),
        aggregation=token_mean,
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
    cap: Positive = 20.0

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
    equals_grpo_when="there is one update per step and the engine's log-probabilities are "
    "the trainer's",
    verl="loss_mode='dppo_kl' with rollout_correction.bypass_mode=True, so that its old policy is "
    "the sampler; its cap is clip_ratio_c, 3 from the actor's config, not 20",
    checked=("golden", "properties", "reference", "run"),
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
        (
            "Advantages are divided by the standard deviation and the loss is a token mean; the "
            "authors' script recommends Dr. GRPO's, without std and over one constant."
        ),
        (
            "Weights are capped at 20, verl's documented default; the authors' script switches the "
            "cap off."
        ),
    ),
    audit=(
        "mask, thresholds, group and batch sizes compared with Stable-RL's mask function and the "
        "authors' script; arithmetic with verl 0.9.1"
    ),
    shown=("docs/claims.md#reuse",),
)
