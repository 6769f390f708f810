"""Entropy advantage: uncertain steps are worth more. Cheng et al., 2025, arXiv:2506.14758."""

import torch
from torch import Tensor

from grupo.algo.advantages import Center, ScaleByStd, chain
from grupo.algo.aggregation import token_mean
from grupo.core.batch import Batch, broadcast_to_tokens
from grupo.core.component import component
from grupo.core.paper import Paper
from grupo.method import Method
from grupo.rollouts.samplers import GroupSampler

PAPER = Paper(
    title="Reasoning with Exploration: An Entropy Perspective",
    use="Pass@k matters, and reasoning gets short and sure too early.",
    checked=("golden", "laws", "run"),
)


@component
class AddEntropy:
    """x + min(alpha H, |x| / kappa): the bonus never turns a sign."""

    entropy_coef: float = 0.4
    advantage_divisor: float = 2.0

    @property
    def required_signals(self) -> frozenset[str]:
        """The entropy of the policy that sampled."""
        return frozenset({"entropy"})

    def __call__(self, x: Tensor, batch: Batch) -> Tensor:
        A = broadcast_to_tokens(x, batch)
        H = batch.signals["entropy"].masked_fill(~batch.mask, 0.0).to(A)
        return A + torch.min(self.entropy_coef * H, A.abs() / self.advantage_divisor)


def entropy_advantage(
    group_size: int = 8, entropy_coef: float = 0.4, advantage_divisor: float = 2.0
) -> Method:
    """A = A' + min(`alpha` H_t, |A'| / `advantage_divisor`), A' = (r - mean(r)) / std(r), H_t the entropy.

    H is a constant, measured before the update; kappa > 1 keeps the sign of A'.
    """
    # alpha 0.4 and kappa 2 are the paper's, as we remember them, on GRPO with a token mean; group
    # is our choice.
    credit = chain(Center(), ScaleByStd(), AddEntropy(entropy_coef, advantage_divisor))
    return Method(sampler=GroupSampler(group_size), advantage=credit, aggregation=token_mean)
