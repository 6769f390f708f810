"""KL-Cov: a KL penalty on tokens that reduce entropy most. Cui et al., 2025, arXiv:2505.22617."""

import torch

from grupo.algo import ratios
from grupo.algo.aggregation import token_mean, top_fraction_mask
from grupo.algo.losses import Loss
from grupo.algo.losses.entropy_aware import logp_advantage_covariance
from grupo.algo.minibatches import Updates
from grupo.core.batch import Batch, PerAction, Signals
from grupo.core.component import component
from grupo.core.numbers import Fraction, NonNegative, NumberOrSchedule, PositiveInt
from grupo.core.paper import Paper, Source
from grupo.core.requires import Requires
from grupo.method import Method
from grupo.rollouts.samplers import GroupSampler


def kl_cov(
    group_size: PositiveInt = 8, penalized_fraction: Fraction = 2e-4, kl_coef: NonNegative = 1.0
) -> Method:
    """loss = -R A + kl_coef |log R| on the penalized_fraction of tokens with the greatest
    covariance.

    cov = (log pi - mean log pi) (A - mean A), means over the minibatch's tokens; -R A, unclipped,
    on all others. At least one token is penalized.

    A step has 8 updates, each on a minibatch of its groups.

    Args:
        group_size: rollouts per task (authors' scripts: 8).
        penalized_fraction: fraction of tokens with the penalty (authors' 32B script: 0.0002, 7B
            script: 0.002).
        kl_coef: weight of |log R| (authors' code: 1.0).
    """
    return Method(
        sampler=GroupSampler(group_size),
        loss=PenaliseHighCovariance(penalized_fraction, kl_coef),
        aggregation=token_mean,
        updates=Updates(minibatches=8),
    )


@component
class PenaliseHighCovariance(Loss):
    """-R A, plus kl_coef |log R| on the tokens with the greatest covariance.

    Args:
        penalized_fraction: fraction of tokens with the penalty.
        kl_coef: weight of |log R|.
    """

    penalized_fraction: Fraction
    kl_coef: NumberOrSchedule

    # the covariance uses the means of the minibatch
    requires = Requires(coupled_rows=True, whole_batch=True)

    def __call__(self, pi: Signals, batch: Batch) -> PerAction:
        penalized = torch.zeros_like(batch.mask)
        penalized[batch.mask] = top_fraction_mask(
            logp_advantage_covariance(pi, batch)[batch.mask], self.penalized_fraction
        )
        drift = ratios.token_log_ratio(pi, batch)
        return -drift.exp() * batch.advantage + self.kl_coef * drift.abs() * penalized


PAPER = Paper(
    title="The Entropy Mechanism of Reinforcement Learning for Reasoning Language Models",
    use="Entropy collapses early, and a penalty is preferred to Clip-Cov's dropped tokens.",
    tags=("entropy", "kl"),
    equals_grpo_when="there is one update per step",
    verl="loss_mode='kl_cov' (covariance of the micro-batch)",
    checked=("golden", "properties", "reference", "run"),
    source=Source(
        "code",
        "PRIME-RL/Entropy-Mechanism-of-RL: compute_policy_loss_kl_cov in "
        "verl/trainer/ppo/core_algos.py, recipe/dapo/32b_kl_cov.sh and 7b_kl_cov.sh",
    ),
    plan="both scripts: 256 prompts per step in minibatches of 32, 8 updates",
    missing=(
        (
            "Refilling after groups of equal accuracy are dropped, up to 10 generation batches:"
            " .replace(filter=keep_nonzero_std, curriculum=DynamicSampling(ShuffledTasks(), "
            "10))."
        ),
    ),
    deviations=(
        "The penalty is |log R|, as in the code: the paper writes KL(old, pi).",
        (
            "ceil(n x fraction) tokens are penalized, and all ties: the code has max(1, int(n x"
            " fraction))."
        ),
        "Covariance and token mean are those of the minibatch, the code's those of a micro-batch.",
        "The fork does not clamp the log-ratio, nor does the method.",
    ),
    audit=(
        "count of tokens, constants and plan compared with the code and both scripts; "
        "arithmetic compared with verl 0.9.1 in an earlier audit"
    ),
    shown=("docs/claims.md#reuse",),
)
