"""DisCO: score correct answers above the hardest wrong ones. Li et al., 2025, arXiv:2505.12366."""

from grupo.algo.advantages import identity
from grupo.algo.aggregation import group_mean
from grupo.algo.losses import DiscriminativeLoss, TrustRegion
from grupo.core.numbers import NonNegative, Positive, PositiveInt
from grupo.core.paper import Paper
from grupo.method import Method
from grupo.rollouts.samplers import GroupSampler

PAPER = Paper(
    title="DisCO: Reinforcing Large Reasoning Models with Discriminative Constrained Optimization",
    use="Rewards are correct or not, and very easy and very hard tasks should count in full.",
    tags=("advantage", "curriculum"),
    checked=("golden", "properties", "reference", "run"),
    catalogue=("disco",),
)


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

    Args:
        group_size: rollouts per task.
        score_temperature: tau; a large one compares with the mean incorrect answer (DisCO-b).
        trust_region_coef: weight of the trust region.
        max_kl: K from which the penalty applies, in nats per token.
    """
    # The paper's log-likelihood score; its ratio score is DiscriminativeLoss(mean_ratio, tau=1.0).
    # An answer is correct if its reward is positive.
    return Method(
        sampler=GroupSampler(group_size),
        advantage=identity,
        loss=DiscriminativeLoss(tau=score_temperature) + TrustRegion(trust_region_coef, max_kl),
        aggregation=group_mean,
    )
