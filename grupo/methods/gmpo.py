"""GMPO: geometric mean of clipped token ratios. Zhao et al., 2025, arXiv:2507.20673."""

from collections.abc import Callable
from dataclasses import replace

import torch
from torch import Tensor

from grupo.algo.aggregation import top_fraction_mask
from grupo.algo.losses import Loss
from grupo.algo.minibatches import Updates
from grupo.algo.ratios import token_log_ratio
from grupo.algo.token_level import SEQUENCES, row_mean
from grupo.core.batch import Batch, PerAction, Signals
from grupo.core.component import component
from grupo.core.numbers import Fraction, NonNegative, PositiveInt
from grupo.core.paper import Paper, Source
from grupo.core.requires import Requires
from grupo.method import Method
from grupo.rollouts.samplers import GroupSampler


def gmpo(
    group_size: PositiveInt = 8, clip_eps: NonNegative = 0.4, minibatches: PositiveInt = 8
) -> Method:
    """loss = mean over answers of -A (prod_t c_t)^(1/L), the geometric mean of clipped ratios.

    c_t = min(r_t, e^clip_eps) where A > 0, max(r_t, e^-clip_eps) where A < 0. Tokens are clipped
    before the mean; GSPO clips after it. A = (r - mean(r)) / std(r).

    Args:
        group_size: rollouts per task (authors' code: 8).
        clip_eps: bound on |log r_t| (authors' code: 0.4).
        minibatches: optimizer updates per rollout step (authors' code: 8).
    """
    return Method(
        sampler=GroupSampler(group_size),
        loss=GeometricClip(clip_eps, clip_eps),
        updates=Updates(minibatches=minibatches),
    )


def all_tokens(batch: Batch) -> Tensor:
    """True for every trained token, (N, T)."""
    return batch.mask


@component
class TopEntropyTokens:
    """True for the `fraction` of the batch's tokens with the highest entropy, (N, T).

    Args:
        fraction: share of the batch's tokens; at least one is True.
    """

    fraction: Fraction = 0.2

    # entropy of the policy before the update, in nats
    requires = Requires(signals=("entropy",), whole_batch=True)

    def __call__(self, batch: Batch) -> Tensor:
        selected = torch.zeros_like(batch.mask)
        selected[batch.mask] = top_fraction_mask(
            batch.signals["entropy"][batch.mask], self.fraction
        )
        return selected


@component
class GeometricClip(Loss):
    """-A exp(mean_t log r_t), log r_t clipped to [-clip_low, clip_high] on the side A pushes to.

    Args:
        clip_low: lower bound on log r is -clip_low.
        clip_high: upper bound on log r.
        tokens: the tokens of the mean, (N, T); all by default. A row without any has the ratio 1.
    """

    clip_low: NonNegative = 0.4
    clip_high: NonNegative = 0.4
    tokens: Callable[[Batch], Tensor] = all_tokens

    requires = SEQUENCES

    def __call__(self, pi: Signals, batch: Batch) -> PerAction:
        d = token_log_ratio(pi, batch)
        A = batch.advantage
        d = A.sign() * torch.min(A.sign() * d, A.sign() * d.clamp(-self.clip_low, self.clip_high))
        return -A * row_mean(d, replace(batch, mask=batch.mask & self.tokens(batch))).exp()


PAPER = Paper(
    title="Geometric-Mean Policy Optimization",
    use="A few outlying token ratios drive the updates, and a wider clip is wanted.",
    tags=("importance-sampling", "clipping", "aggregation"),
    equals_grpo_when="there is one update per step",
    trl="experimental.gmpo, epsilon=0.4 (in log space)",
    verl="loss_mode='geo_mean', clip_ratio_low=clip_ratio_high=0.4; ends in a mean over the "
    "micro-batch",
    checked=("golden", "properties", "reference", "run"),
    source=Source(
        "code",
        "callsys/GMPO: scripts/qwen2.5-math-7b-gmpo.sh and the learner of train_zero_math_gmpo.py",
    ),
    plan="the script: 1,024 answers per step in minibatches of 128: 8 updates per step",
    missing=(
        "The multimodal recipe (Geometry3K).",
        "Truncated answers have reward 0 in the release.",
    ),
    deviations=(
        "A minibatch holds whole groups: the release's 128 answers are drawn from all groups.",
        "1e-6 is added to the standard deviation, in the release 1e-8.",
    ),
    audit="form and constants compared with TRL 1.16 and verl 0.9.1, number for number",
    shown=("docs/claims.md#reuse",),
)
