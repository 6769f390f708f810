"""VESPO: a gamma kernel of the ratio weights answers. Shen et al., 2026, arXiv:2602.10693."""

import torch
from torch import Tensor

from grupo.algo import ratios
from grupo.algo.aggregation import token_mean
from grupo.algo.losses import WeightedReinforce
from grupo.core.batch import Batch, Signals
from grupo.core.component import component
from grupo.core.numbers import NonNegative, Number, PositiveInt
from grupo.core.paper import Paper
from grupo.method import Method
from grupo.rollouts.samplers import GroupSampler

PAPER = Paper(
    title="VESPO: Variational Sequence-Level Soft Policy Optimization for Stable Off-Policy LLM "
    "Training",
    use="Rollouts are many updates old, and a smooth weight should replace clips.",
    tags=("off-policy", "importance-sampling"),
    trl="loss_type='vespo', vespo_k_pos=2.0, vespo_lambda_pos=3.0, vespo_k_neg=3.0, "
    "vespo_lambda_neg=2.0",
    checked=("golden", "properties", "reference", "run"),
)


@component
class GammaKernel:
    """w^k e^(decay (1 - w)) of the product w of the row's ratios: 1 at w = 1, 0 at 0 and infinity.

    Args:
        positive_params: k and decay where A >= 0.
        negative_params: k and decay where A < 0.
    """

    positive_params: tuple[Number, Number] = (2.0, 3.0)
    negative_params: tuple[Number, Number] = (3.0, 2.0)

    def __call__(self, pi: Signals, batch: Batch) -> Tensor:
        w = ratios.product(pi, batch)
        A = batch.advantage
        k, decay = (
            torch.where(A >= 0, p, n).to(A)
            for p, n in zip(self.positive_params, self.negative_params, strict=True)
        )
        return (decay + k * w.log() - decay * w).exp()


def vespo(
    group_size: PositiveInt = 8,
    positive_params: tuple[NonNegative, NonNegative] = (2.0, 3.0),
    negative_params: tuple[NonNegative, NonNegative] = (3.0, 2.0),
) -> Method:
    """loss = mean over all tokens of -sg(phi(w)) A log pi, phi(w) = w^k e^(decay (1 - w)).

    w = pi(answer) / old(answer), not normalised by length. A = (r - mean(r)) / std(r).

    Args:
        group_size: rollouts per task (authors' code: 8).
        positive_params: k and decay where A >= 0 (authors' code: (2.0, 3.0)).
        negative_params: k and decay where A < 0 (authors' code: (3.0, 2.0)).
    """
    # Form and constants are those of the authors' scripts, which average over tokens.
    return Method(
        sampler=GroupSampler(group_size),
        loss=WeightedReinforce(GammaKernel(positive_params, negative_params)),
        aggregation=token_mean,
    )
