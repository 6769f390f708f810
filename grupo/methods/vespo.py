"""VESPO: a smooth weight of each answer by its ratio. Shen et al., 2026, arXiv:2602.10693."""

from collections.abc import Callable

import torch
from torch import Tensor

from grupo.algo import ratios
from grupo.algo.aggregation import token_mean
from grupo.algo.losses import WeightedReinforce
from grupo.algo.minibatches import Updates
from grupo.core.batch import Batch, Signals
from grupo.core.component import component
from grupo.core.numbers import NonNegative, NumberOrSchedule, PositiveInt
from grupo.core.paper import Paper, Source
from grupo.method import Method
from grupo.rollouts.samplers import GroupSampler


def vespo(
    group_size: PositiveInt = 8,
    positive_params: tuple[NonNegative, NonNegative] = (2.0, 3.0),
    negative_params: tuple[NonNegative, NonNegative] = (3.0, 2.0),
) -> Method:
    """loss = mean over all tokens of -sg(phi(w)) A log pi, phi(w) = w^k e^(decay (1 - w)).

    w = pi(answer) / old(answer), not normalised by length. A = (r - mean(r)) / std(r).

    A step makes 8 updates, one on each of 8 minibatches.

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
        updates=Updates(minibatches=8),
    )


@component
class GammaKernel:
    """w^k e^(decay (1 - w)), where w is the product of the row's ratios.

    The weight is 1 at w = 1, and tends to 0 as w tends to 0 or to infinity. If `ratio` is
    `ratios.RatioTo("sampler", row_sum)`, w is the ratio to the inference engine's policy.

    Args:
        positive_params: k and decay where A >= 0.
        negative_params: k and decay where A < 0.
        ratio: w, a function `(pi, batch) -> (N, 1)`.
    """

    positive_params: tuple[NumberOrSchedule, NumberOrSchedule] = (2.0, 3.0)
    negative_params: tuple[NumberOrSchedule, NumberOrSchedule] = (3.0, 2.0)
    ratio: Callable[[Signals, Batch], Tensor] = ratios.product

    def __call__(self, pi: Signals, batch: Batch) -> Tensor:
        w = self.ratio(pi, batch)
        A = batch.advantage
        k, decay = (
            torch.full_like(A, n).masked_fill(A >= 0, p)
            for p, n in zip(self.positive_params, self.negative_params, strict=True)
        )
        return (decay + k * w.log() - decay * w).exp()


PAPER = Paper(
    title="VESPO: Variational Sequence-Level Soft Policy Optimization for Stable Off-Policy LLM "
    "Training",
    use="Rollouts are many updates old, and a smooth weight should replace clips.",
    tags=("off-policy", "importance-sampling"),
    equals_grpo_when="there is one update per step",
    trl="loss_type='vespo', vespo_k_pos=2.0, vespo_lambda_pos=3.0, vespo_k_neg=3.0, "
    "vespo_lambda_neg=2.0",
    checked=("golden", "properties", "reference", "run"),
    source=Source(
        "code",
        "FloyedShen/VESPO, recipe/vespo/code/core_algos.py and recipe/vespo/run/sync/vespo_N_8.sh",
    ),
    plan=(
        "vespo_N_8.sh: train batch 2048, minibatch 256: 8 updates per step (other scripts: 16, 32 "
        "and 64)"
    ),
    missing=("The engine's importance weights as factors of w.",),
    audit=(
        "arithmetic compared with TRL 1.16 and verl 0.9.1 (848 cases); kernel, constants and "
        "batch sizes compared with core_algos.py and the script"
    ),
    shown=("docs/claims.md#reuse",),
)
