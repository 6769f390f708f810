"""DisCO: score correct answers above the hardest wrong ones. Li et al., 2025, arXiv:2505.12366."""

from grupo.algo.advantages import identity
from grupo.algo.aggregation import group_mean
from grupo.algo.losses import DiscriminativeLoss, TrustRegion
from grupo.algo.minibatches import Updates
from grupo.core.numbers import NonNegative, Positive, PositiveInt
from grupo.core.paper import Paper, Source
from grupo.method import Method
from grupo.rollouts.samplers import GroupSampler


def disco(
    group_size: PositiveInt = 8,
    score_temperature: Positive = 10.0,
    trust_region_coef: Positive = 1000.0,
    max_kl: NonNegative = 1e-4,
) -> Method:
    """-J of each group, J = mean_correct s - tau log mean_incorrect exp(s / tau), + a trust region.

    s = mean_t log pi of an answer, tau = score_temperature. The penalty is
    trust_region_coef / 2 max(0, K - max_kl)^2, K the mean over tokens of log pi_old - log pi.
    Groups without a correct or an incorrect answer add 0 to the mean.

    A step makes 4 updates, one on each of 4 minibatches.

    Args:
        group_size: rollouts per task.
        score_temperature: tau; a large one compares with the mean incorrect answer (DisCO-b).
        trust_region_coef: weight of the trust region.
        max_kl: K from which the penalty applies, in nats per token.
    """
    return Method(
        sampler=GroupSampler(group_size),
        advantage=identity,
        loss=DiscriminativeLoss(tau=score_temperature) + TrustRegion(trust_region_coef, max_kl),
        aggregation=group_mean,
        updates=Updates(minibatches=4),
    )


PAPER = Paper(
    title="DisCO: Reinforcing Large Reasoning Models with Discriminative Constrained Optimization",
    use="Rewards are correct or not, and very easy and very hard tasks should count in full.",
    tags=("advantage", "curriculum"),
    checked=("golden", "properties", "reference", "run"),
    catalogue=("disco",),
    source=Source(
        "code",
        "Optimization-AI/DisCO, verl/verl/trainer/ppo/core_algos.py and "
        "scripts/train/run_disco_logL_1.5b_8k.sh",
    ),
    plan="run_disco_logL_1.5b_8k.sh: train batch 128, minibatch 32 prompts: 4 updates per step",
    missing=("Sampling at temperature 0.6, which is a choice of the recipe.",),
    deviations=(
        "An answer is correct if its reward is positive, in the release if it is 1.",
        (
            "K is the mean over a minibatch of 256 answers; the release takes it, and the penalty, "
            "over 32 answers at a time, 4 of each of 8 devices."
        ),
        (
            "The score is the log-likelihood; the ratio score of the paper is "
            "DiscriminativeLoss(mean_ratio, tau=1.0)."
        ),
    ),
    audit=(
        "score, trust region (ppo_kl_type kl), constants and batch sizes compared with "
        "compute_policy_loss_disco_logL and the script"
    ),
    shown=("docs/claims.md#reuse",),
)
