"""KL-Cov: a penalty on the tokens that cost most entropy. Cui et al., 2025, arXiv:2505.22617."""

import torch

from grupo.algo import ratios
from grupo.algo.aggregation import token_mean, top_fraction_mask
from grupo.algo.losses import Loss
from grupo.algo.losses.entropy_aware import logp_advantage_covariance
from grupo.core.batch import Batch, PerAction, Signals
from grupo.core.component import component
from grupo.core.paper import Paper
from grupo.method import Method
from grupo.rollouts.samplers import GroupSampler

PAPER = Paper(
    title="The Entropy Mechanism of Reinforcement Learning for Reasoning Language Models",
    use="Entropy collapses early: the steadier of the paper's two remedies.",
    verl="loss_mode='kl_cov' (covariance of the micro-batch)",
    checked=("golden", "laws", "reference", "run"),
)


@component
class PenaliseHighCovariance(Loss):
    """-R A, + `kl_coef` |log R| on the `penalized_fraction` of actions whose covariance is greatest."""

    penalized_fraction: float
    kl_coef: float

    @property
    def couples_rows(self) -> bool:
        return True

    @property
    def needs_whole_batch(self) -> bool:
        """Yes: the covariance is about the means of the minibatch."""
        return True

    def __call__(self, pi: Signals, batch: Batch) -> PerAction:
        held = torch.zeros_like(batch.mask)
        held[batch.mask] = top_fraction_mask(
            logp_advantage_covariance(pi, batch)[batch.mask], self.penalized_fraction
        )
        drift = ratios.token_log_ratio(pi, batch)
        return -drift.exp() * batch.advantage + self.kl_coef * held * drift.abs()


def kl_cov(group_size: int = 8, penalized_fraction: float = 2e-4, kl_coef: float = 1.0) -> Method:
    """loss = -R A + `kl_coef` |log R| on the `penalized_fraction` of tokens with the greatest covariance.

    cov = (log pi - mean log pi) (A - mean A), means over the minibatch's tokens; -R A alone,
    unclipped, on all others. At least one token is held.
    """
    # The paper writes KL(old, pi) for the penalty; the released code takes |log R|, and so do we.
    # 2e-4 and 1 are the released defaults (2e-3 for the paper's 7B model).
    return Method(
        sampler=GroupSampler(group_size),
        loss=PenaliseHighCovariance(penalized_fraction, kl_coef),
        aggregation=token_mean,
    )
