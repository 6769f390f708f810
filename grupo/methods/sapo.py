"""SAPO: a soft gate replaces the clip. Gao et al., 2025, arXiv:2511.20347."""

import torch

from grupo.algo import ratios
from grupo.algo.losses import Loss
from grupo.algo.minibatches import Updates
from grupo.core.batch import Batch, PerAction, Signals
from grupo.core.component import component
from grupo.core.numbers import Positive, PositiveInt
from grupo.core.paper import Paper
from grupo.method import Method
from grupo.rollouts.samplers import GroupSampler

PAPER = Paper(
    title="Soft Adaptive Policy Optimization",
    use="GSPO's clip masks whole answers for a few outlying tokens.",
    tags=("clipping",),
    trl="loss_type='sapo', sapo_temperature_pos=1.0, sapo_temperature_neg=1.05",
    verl="loss_mode='sapo', tau_pos, tau_neg; ignores loss_agg_mode",
    checked=("golden", "properties", "reference", "run"),
)


@component
class SoftGateLoss(Loss):
    """-A sigmoid(tau (r - 1)) 4 / tau, tau depending on the sign of A.

    Its gradient is that of r A, times 1 at r = 1 and less the further r is from it.

    Args:
        positive_temperature: tau where A > 0.
        negative_temperature: tau elsewhere.
    """

    positive_temperature: Positive = 1.0
    negative_temperature: Positive = 1.05

    def __call__(self, pi: Signals, batch: Batch) -> PerAction:
        r = ratios.token(pi, batch)
        A = batch.advantage
        tau = torch.where(A > 0, self.positive_temperature, self.negative_temperature).to(A)
        return -A * torch.sigmoid(tau * (r - 1)) * 4 / tau


def sapo(
    group_size: PositiveInt = 8,
    positive_temperature: Positive = 1.0,
    negative_temperature: Positive = 1.05,
) -> Method:
    """loss = mean over answers of mean over tokens of -A sigmoid(tau (r - 1)) 4 / tau.

    tau is positive_temperature where A > 0, else negative_temperature: negative tokens are gated
    more, since their gradient raises the probability of every token that was not sampled. A = (r -
    mean(r)) / std(r).

    Args:
        group_size: rollouts per task (our choice).
        positive_temperature: tau where A > 0 (paper: 1.0).
        negative_temperature: tau elsewhere (paper: 1.05).
    """
    # Temperatures are quoted in ms-swift's documentation; four minibatches a step are GSPO's.
    return Method(
        sampler=GroupSampler(group_size),
        loss=SoftGateLoss(positive_temperature, negative_temperature),
        updates=Updates(minibatches=4),
    )
