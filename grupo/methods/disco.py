"""DisCO: score right answers above the hardest wrong ones. Li et al., 2025, arXiv:2505.12366."""

from grupo.algo.advantages import identity
from grupo.algo.aggregation import group_mean
from grupo.algo.losses import DiscriminativeLoss, TrustRegion
from grupo.core.paper import Paper
from grupo.method import Method
from grupo.rollouts.samplers import GroupSampler

PAPER = Paper(
    title="DisCO: Reinforcing Large Reasoning Models with Discriminative Constrained Optimization",
    use="Rewards are right or wrong, and very easy and very hard tasks should count in full.",
    checked=("golden", "laws", "reference", "run"),
    catalogue=("disco",),
)


def disco(
    group_size: int = 8,
    score_temperature: float = 10.0,
    trust_region_coef: float = 1000.0,
    max_kl: float = 1e-4,
) -> Method:
    """-J of each group, J = mean_right s - `score_temperature` log mean_wrong exp(s / `score_temperature`), + a trust region.

    s = mean_t log pi of an answer. The penalty is `trust_region_coef` / 2 max(0, K - `max_kl`)^2, K the mean over
    tokens of log pi_old - log pi. Groups without a right or a wrong answer add 0 to the mean.
    """
    # The paper's log-likelihood score. Its ratio score: Discriminate(mean_ratio, tau=1.0); its
    # DisCO-b, the plain mean of the wrong, is a large tau. Right is a positive reward.
    return Method(
        sampler=GroupSampler(group_size),
        advantage=identity,
        loss=DiscriminativeLoss(tau=score_temperature) + TrustRegion(trust_region_coef, max_kl),
        aggregation=group_mean,
    )
