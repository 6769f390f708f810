"""KL-Cov: a penalty on the tokens that cost most entropy. Cui et al., 2025, arXiv:2505.22617."""

import torch

from grupo.algo import ratios
from grupo.algo.aggregation import token_mean, top
from grupo.algo.losses import Loss
from grupo.algo.losses.entropy_aware import covariance
from grupo.core.batch import Batch, PerAction, Signals
from grupo.core.component import piece
from grupo.core.paper import Paper
from grupo.method import Method
from grupo.rollouts.samplers import Independent

PAPER = Paper(
    title="The Entropy Mechanism of Reinforcement Learning for Reasoning Language Models",
    use="Entropy collapses early: the steadier of the paper's two remedies.",
    verl="loss_mode='kl_cov' (covariance of the micro-batch)",
    checked=("golden", "laws", "reference", "run"),
)


@piece
class HoldCovariant(Loss):
    """-R A, + `beta` |log R| on the `share` of actions whose covariance is greatest."""

    share: float
    beta: float

    @property
    def couples_rows(self) -> bool:
        return True

    @property
    def reads_whole_batch(self) -> bool:
        """Yes: the covariance is about the means of the minibatch."""
        return True

    def __call__(self, pi: Signals, batch: Batch) -> PerAction:
        held = torch.zeros_like(batch.mask)
        held[batch.mask] = top(covariance(pi, batch)[batch.mask], self.share)
        drift = ratios.token_log_ratio(pi, batch)
        return -drift.exp() * batch.advantage + self.beta * held * drift.abs()


def kl_cov(group: int = 8, share: float = 2e-4, beta: float = 1.0) -> Method:
    """loss = -R A + `beta` |log R| on the `share` of tokens with the greatest covariance.

    cov = (log pi - mean log pi) (A - mean A), means over the minibatch's tokens; -R A alone,
    unclipped, on all others. At least one token is held.
    """
    # The paper writes KL(old, pi) for the penalty; the released code takes |log R|, and so do we.
    # 2e-4 and 1 are the released defaults (2e-3 for the paper's 7B model).
    return Method(sample=Independent(group), loss=HoldCovariant(share, beta), weigh=token_mean)
