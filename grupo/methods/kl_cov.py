"""KL-Cov: a KL penalty on tokens that reduce entropy most. Cui et al., 2025, arXiv:2505.22617."""

import torch

from grupo.algo import ratios
from grupo.algo.aggregation import token_mean, top_fraction_mask
from grupo.algo.losses import Loss
from grupo.algo.losses.entropy_aware import logp_advantage_covariance
from grupo.core.batch import Batch, PerAction, Signals
from grupo.core.component import component
from grupo.core.numbers import Fraction, NonNegative, Number, PositiveInt
from grupo.core.paper import Paper
from grupo.core.requires import Requires
from grupo.method import Method
from grupo.rollouts.samplers import GroupSampler

PAPER = Paper(
    title="The Entropy Mechanism of Reinforcement Learning for Reasoning Language Models",
    use="Entropy collapses early; this is the more stable of the paper's two remedies.",
    tags=("entropy", "kl"),
    verl="loss_mode='kl_cov' (covariance of the micro-batch)",
    checked=("golden", "properties", "reference", "run"),
)


@component
class PenaliseHighCovariance(Loss):
    """-R A, plus kl_coef |log R| on the tokens with the greatest covariance.

    Args:
        penalized_fraction: fraction of tokens with the penalty.
        kl_coef: weight of |log R|.
    """

    penalized_fraction: Fraction
    kl_coef: Number

    # the covariance uses the means of the minibatch
    requires = Requires(coupled_rows=True, whole_batch=True)

    def __call__(self, pi: Signals, batch: Batch) -> PerAction:
        penalized = torch.zeros_like(batch.mask)
        penalized[batch.mask] = top_fraction_mask(
            logp_advantage_covariance(pi, batch)[batch.mask], self.penalized_fraction
        )
        drift = ratios.token_log_ratio(pi, batch)
        return -drift.exp() * batch.advantage + self.kl_coef * penalized * drift.abs()


def kl_cov(
    group_size: PositiveInt = 8, penalized_fraction: Fraction = 2e-4, kl_coef: NonNegative = 1.0
) -> Method:
    """loss = -R A + kl_coef |log R| on the penalized_fraction of tokens with the greatest
    covariance.

    cov = (log pi - mean log pi) (A - mean A), means over the minibatch's tokens; -R A, unclipped,
    on all others. At least one token is penalized.

    Args:
        group_size: rollouts per task.
        penalized_fraction: fraction of tokens with the penalty (authors' code: 0.0002).
        kl_coef: weight of |log R| (authors' code: 1.0).
    """
    # The paper writes KL(old, pi) for the penalty; the released code takes |log R|, as here. Its
    # fraction is 2e-3 for the paper's 7B model.
    return Method(
        sampler=GroupSampler(group_size),
        loss=PenaliseHighCovariance(penalized_fraction, kl_coef),
        aggregation=token_mean,
    )
