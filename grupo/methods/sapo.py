"""SAPO: a soft gate replaces the clip. Gao et al., 2025, arXiv:2511.20347."""

from collections.abc import Callable

import torch
from torch import Tensor

from grupo.algo import ratios
from grupo.algo.losses import Loss
from grupo.algo.minibatches import Updates
from grupo.core.batch import Batch, PerAction, Signals
from grupo.core.component import component
from grupo.core.numbers import Positive, PositiveInt
from grupo.core.paper import Paper, Source
from grupo.method import Method
from grupo.rollouts.samplers import GroupSampler


def sapo(
    group_size: PositiveInt = 8,
    positive_temperature: Positive = 1.0,
    negative_temperature: Positive = 1.05,
) -> Method:
    """loss = mean over answers of mean over tokens of -A sigmoid(tau (r - 1)) 4 / tau.

    tau is positive_temperature where A > 0, else negative_temperature. The larger tau narrows the
    gate for A < 0, because such gradients raise the probability of every token that was not
    sampled. A = (r - mean(r)) / std(r).

    Args:
        group_size: rollouts per task (our choice).
        positive_temperature: tau where A > 0 (paper: 1.0).
        negative_temperature: tau elsewhere (paper: 1.05).
    """
    # ms-swift's documentation quotes the temperatures, a public analysis the four minibatches
    return Method(
        sampler=GroupSampler(group_size),
        loss=SoftGateLoss(positive_temperature, negative_temperature),
        updates=Updates(minibatches=4),
    )


@component
class SoftGateLoss(Loss):
    """-A sigmoid(tau (r - 1)) 4 / tau, tau depending on the sign of A.

    Its gradient is that of -r A times a factor, which is 1 at r = 1 and falls with the distance of
    r from 1.

    Args:
        positive_temperature: tau where A > 0.
        negative_temperature: tau elsewhere.
        ratio: importance ratio; per token by default, `ratios.sequence` for that of the row.
    """

    positive_temperature: Positive = 1.0
    negative_temperature: Positive = 1.05
    ratio: Callable[[Signals, Batch], Tensor] = ratios.token

    def __call__(self, pi: Signals, batch: Batch) -> PerAction:
        r = self.ratio(pi, batch)
        A = batch.advantage
        tau = torch.full_like(A, self.negative_temperature)
        tau = tau.masked_fill(A > 0, self.positive_temperature)
        return -A * torch.sigmoid(tau * (r - 1)) * 4 / tau


PAPER = Paper(
    title="Soft Adaptive Policy Optimization",
    use="GSPO's clip masks whole answers for a few outlying tokens.",
    tags=("clipping",),
    equals_grpo_when="there is one update per step",
    trl="loss_type='sapo', sapo_temperature_pos=1.0, sapo_temperature_neg=1.05",
    verl="loss_mode='sapo', tau_pos, tau_neg; ignores loss_agg_mode",
    checked=("golden", "properties", "reference", "run"),
    source=Source(
        "third_party",
        "ms-swift's documentation of SAPO for gate and temperatures; TRL and verl; a public"
        " analysis of the paper for eq. 5 and the number of minibatches",
    ),
    plan=(
        "4 minibatches in the controlled experiments, 2 for Qwen3-VL, as a public analysis of the "
        "paper reports (verl's example run has 8): 4 updates per step"
    ),
    audit=(
        "arithmetic compared with TRL 1.16 and verl 0.9.1 (848 cases); gate and temperatures "
        "compared with ms-swift's documentation"
    ),
    shown=("docs/claims.md#reuse",),
)
