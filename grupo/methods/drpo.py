"""DRPO: short correct answers count more, none is penalised. Li et al., 2025, arXiv:2510.04474."""

from torch import Tensor

from grupo.algo.advantages import identity
from grupo.algo.aggregation import group_mean
from grupo.algo.losses import DiscriminativeLoss, TrustRegion
from grupo.algo.losses.contrastive import mean_logp
from grupo.algo.minibatches import Updates
from grupo.core.batch import Batch
from grupo.core.component import component
from grupo.core.numbers import NonNegative, Positive, PositiveInt
from grupo.core.paper import Paper, Source
from grupo.method import Method
from grupo.rollouts.samplers import GroupSampler


def drpo(
    max_length: PositiveInt,
    group_size: PositiveInt = 8,
    length_temperature: Positive = 0.1,
    score_temperature: Positive = 10.0,
    trust_region_coef: Positive = 1000.0,
    max_kl: NonNegative = 1e-4,
) -> Method:
    """DisCO with correct answers weighted by w = exp((1 - L / max_length) / length_temperature).

    -J of each group, J = sum_correct w s / sum_correct w - tau log mean_incorrect exp(s / tau),
    s = mean_t log pi and tau = score_temperature, + trust_region_coef / 2 max(0, K - max_kl)^2, K
    the token mean of log old - log pi.

    A step makes 4 updates, one on each of 4 minibatches.

    Args:
        max_length: largest length, in tokens (released: 8,192).
        group_size: rollouts per task.
        length_temperature: lambda of the paper, the KL strength of the length reward whose optimum
            is w.
        score_temperature: tau.
        trust_region_coef: weight of the trust region.
        max_kl: K from which the penalty applies, in nats per token.
    """
    weight = LengthWeight(max_length, length_temperature)
    return Method(
        sampler=GroupSampler(group_size),
        advantage=identity,
        loss=DiscriminativeLoss(mean_logp, score_temperature, weight)
        + TrustRegion(trust_region_coef, max_kl),
        aggregation=group_mean,
        updates=Updates(minibatches=4),
    )


@component
class LengthWeight:
    """exp(-(L / max_length) / length_temperature), (R,): weight of a correct answer of L tokens.

    Args:
        max_length: in tokens.
        length_temperature: a small one prefers short answers strongly.
    """

    max_length: PositiveInt
    length_temperature: Positive

    def __call__(self, batch: Batch) -> Tensor:
        return (-batch.lengths / (self.max_length * self.length_temperature)).exp()


PAPER = Paper(
    title="DRPO: Efficient Reasoning via Decoupled Reward Policy Optimization",
    use="Answers are too long, and a length reward within GRPO penalises correct answers.",
    tags=("length", "advantage"),
    checked=("golden", "properties", "reference", "run"),
    example="drpo(max_length=64)",
    catalogue=("drpo-decoupled",),
    source=Source(
        "code",
        "Optimization-AI/DRPO, verl/verl/trainer/ppo/core_algos.py and "
        "scripts/train/run_drpo_1.5b_8k.sh",
    ),
    plan="run_drpo_1.5b_8k.sh: train batch 128, minibatch 32 prompts: 4 updates per step",
    missing=("Sampling at temperature 0.6, which is a choice of the recipe.",),
    deviations=(
        (
            "w is normalised among correct answers alone, as released, so its constant factor "
            "cancels and is left out."
        ),
        "An answer is correct if its reward is positive, in the release if it is 1.",
        (
            "K is the mean over a minibatch of 256 answers; the release takes it, and the penalty, "
            "over 32 answers at a time, 4 of each of 8 devices."
        ),
    ),
    audit=(
        "weights, score, trust region, constants and batch sizes compared with "
        "compute_policy_loss_drpo and the script"
    ),
    shown=("docs/claims.md#padded",),
)
