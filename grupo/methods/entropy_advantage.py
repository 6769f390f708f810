"""Entropy advantage: uncertain tokens get a bonus. Cheng et al., 2025, arXiv:2506.14758."""

import torch
from torch import Tensor

from grupo.algo.advantages import Center, ScaleByStd, chain
from grupo.algo.aggregation import token_mean
from grupo.core.batch import Batch, broadcast_to_tokens
from grupo.core.component import component
from grupo.core.numbers import NonNegative, NumberOrSchedule, Positive, PositiveInt
from grupo.core.paper import Paper, Source
from grupo.core.requires import Requires
from grupo.method import Method
from grupo.rollouts.samplers import GroupSampler


def entropy_advantage(
    group_size: PositiveInt = 8,
    entropy_coef: NonNegative = 0.4,
    advantage_divisor: Positive = 2.0,
) -> Method:
    """A_t = A' + min(entropy_coef H_t, |A'| / advantage_divisor), A' = (r - mean(r)) / std(r).

    H_t is the entropy before the update, a constant. A divisor above 1 keeps the sign of A'.

    Args:
        group_size: rollouts per task (our choice).
        entropy_coef: weight of the entropy, in nats (alpha in the paper) (paper: 0.4).
        advantage_divisor: the bonus is at most |A'| / advantage_divisor (kappa in the paper)
            (paper: 2.0).
    """
    advantage = chain(Center(), ScaleByStd(), AddEntropy(entropy_coef, advantage_divisor))
    return Method(sampler=GroupSampler(group_size), advantage=advantage, aggregation=token_mean)


@component
class AddEntropy:
    """x + min(entropy_coef H, |x| / advantage_divisor): the bonus never changes the sign.

    Args:
        entropy_coef: weight of the entropy H, in nats (alpha in the paper).
        advantage_divisor: the bonus is at most |x| / advantage_divisor (kappa in the paper).
    """

    entropy_coef: NumberOrSchedule = 0.4
    advantage_divisor: Positive = 2.0

    # the policy's entropy when it sampled
    requires = Requires(signals=("entropy",))

    def __call__(self, x: Tensor, batch: Batch) -> Tensor:
        A = broadcast_to_tokens(x, batch)
        H = batch.signals["entropy"].masked_fill(~batch.mask, 0.0).to(A)
        return A + torch.min(self.entropy_coef * H, A.abs() / self.advantage_divisor)


PAPER = Paper(
    title="Reasoning with Exploration: An Entropy Perspective",
    use="Pass@k matters, and reasoning becomes short and certain too early.",
    tags=("entropy", "exploration", "advantage"),
    checked=("golden", "properties", "run"),
    source=Source(
        "third_party",
        "a public survey of rewards that quotes the bonus; implementations for verl with alpha 0.4 "
        "and kappa 2",
    ),
    plan="not stated in any source that was opened; one update per step",
    deviations=(
        (
            "A clip of 0.2 on both sides, the mean over tokens and no KL divergence are our "
            "choice: no source that was opened gives the paper's."
        ),
    ),
    audit=(
        "formula compared with a public survey that quotes it, constants with two implementations "
        "by other people"
    ),
    shown=("docs/claims.md#modes",),
)
