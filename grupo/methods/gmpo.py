"""GMPO: geometric mean of clipped token ratios. Zhao et al., 2025, arXiv:2507.20673."""

import torch

from grupo.algo.losses import Loss
from grupo.algo.ratios import token_log_ratio
from grupo.algo.token_level import row_mean
from grupo.core.batch import Batch, PerAction, Signals
from grupo.core.component import component
from grupo.core.numbers import NonNegative, PositiveInt
from grupo.core.paper import Paper
from grupo.method import Method
from grupo.rollouts.samplers import GroupSampler

PAPER = Paper(
    title="Geometric-Mean Policy Optimization",
    use="A few outlying token ratios drive the updates, and a wider clip is wanted.",
    tags=("importance-sampling", "clipping", "aggregation"),
    trl="experimental.gmpo, epsilon=0.4 (in log space)",
    verl="loss_mode='geo_mean', clip_ratio_low=clip_ratio_high=0.4; ends in a mean over the "
    "micro-batch",
    checked=("golden", "properties", "reference", "run"),
)


@component
class GeometricClip(Loss):
    """-A exp(mean_t log r_t), log r_t clipped to [-clip_low, clip_high] on the side A pushes to.

    Args:
        clip_low: lower bound on log r is -clip_low.
        clip_high: upper bound on log r.
    """

    clip_low: NonNegative = 0.4
    clip_high: NonNegative = 0.4

    def __call__(self, pi: Signals, batch: Batch) -> PerAction:
        d = token_log_ratio(pi, batch)
        A = batch.advantage
        d = A.sign() * torch.min(A.sign() * d, A.sign() * d.clamp(-self.clip_low, self.clip_high))
        return -A * row_mean(d, batch).exp()


def gmpo(group_size: PositiveInt = 8, clip_eps: NonNegative = 0.4) -> Method:
    """loss = mean over answers of -A (prod_t c_t)^(1/L), the geometric mean of clipped ratios.

    c_t = min(r_t, e^clip_eps) where A > 0, max(r_t, e^-clip_eps) where A < 0. Tokens are clipped
    before the mean; GSPO clips after it. A = (r - mean(r)) / std(r).

    Args:
        group_size: rollouts per task (authors' code: 8).
        clip_eps: bound on |log r_t| (authors' code: 0.4).
    """
    # The form is that of the authors' code (callsys/GMPO), with one update a step; ratios differ
    # from 1 with .replace(updates=Updates(...)).
    return Method(sampler=GroupSampler(group_size), loss=GeometricClip(clip_eps, clip_eps))
