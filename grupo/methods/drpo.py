"""DRPO: short right answers count more, none is pushed down. Li et al., 2025, arXiv:2510.04474."""

from torch import Tensor

from grupo.algo.advantages import identity
from grupo.algo.aggregation import group_mean
from grupo.algo.losses import DiscriminativeLoss, TrustRegion
from grupo.algo.losses.contrastive import mean_logp
from grupo.core.batch import Batch
from grupo.core.component import component
from grupo.core.paper import Paper
from grupo.method import Method
from grupo.rollouts.samplers import GroupSampler

PAPER = Paper(
    title="DRPO: Efficient Reasoning via Decoupled Reward Policy Optimization",
    use="Answers are too long, and a length reward within GRPO punishes right answers for it.",
    checked=("golden", "laws", "reference", "run"),
    example="drpo(max_length=64)",
    catalogue=("drpo-decoupled",),
)


@component
class LengthWeight:
    """exp(-(length / `max_length`) / `length_temperature`): how much a right answer counts, up to a factor."""

    max_length: int
    length_temperature: float

    def __call__(self, batch: Batch) -> Tensor:
        return (-batch.lengths / (self.max_length * self.length_temperature)).exp()


def drpo(
    max_length: int,
    group_size: int = 8,
    length_temperature: float = 0.1,
    score_temperature: float = 10.0,
    trust_region_coef: float = 1000.0,
    max_kl: float = 1e-4,
) -> Method:
    """DisCO with right answers weighed by w = exp((1 - length / `max_length`) / `length_temperature`).

    -J of each group, J = sum_right w s / sum_right w - `score_temperature` log mean_wrong exp(s / `score_temperature`), with
    s = mean_t log pi, + `trust_region_coef` / 2 max(0, K - `max_kl`)^2, K the token mean of log old - log pi.
    """
    # As released; limit is 8,192 there. w is the optimum of the length reward under a KL of
    # strength lambda, here `length_temperature`; it normalises among right answers alone.
    return Method(
        sampler=GroupSampler(group_size),
        advantage=identity,
        loss=DiscriminativeLoss(
            mean_logp, score_temperature, LengthWeight(max_length, length_temperature)
        )
        + TrustRegion(trust_region_coef, max_kl),
        aggregation=group_mean,
    )
