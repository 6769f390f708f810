"""ETR: clips widen with advantage and variance. Zhang et al., 2026, arXiv:2601.03723."""

from torch import Tensor

from grupo.algo.losses import ClipWithin
from grupo.core import group_ops
from grupo.core.batch import Batch
from grupo.core.component import component
from grupo.core.paper import Paper
from grupo.method import Method
from grupo.rollouts.samplers import GroupSampler

PAPER = Paper(
    title="ETR: Outcome-Guided Elastic Trust Regions for Policy Optimization",
    use="Rewards are right or wrong, and clear signals should move the policy further.",
    checked=("golden", "laws", "run"),
    catalogue=("etr",),
)


@component
class ElasticClipBounds:
    """1 - e to 1 + e: e = clip (1 + micro tanh|A|) (1 + macro (v - 1/2)), within 1/2 and 3 clips.

    v is 4 times the group's variance of rewards: 1 where half of rewards in {0, 1} are 1.
    """

    clip_eps: float = 0.2
    advantage_coef: float = 0.5
    variance_coef: float = 0.5

    def __call__(self, batch: Batch) -> tuple[Tensor, Tensor]:
        v = 4 * group_ops.population_std(batch.reward, batch.group) ** 2
        group = (1 + self.variance_coef * (v - 0.5))[batch.rollout, None].to(batch.advantage)
        e = self.clip_eps * (1 + self.advantage_coef * batch.advantage.abs().tanh()) * group
        e = e.clamp(0.5 * self.clip_eps, 3 * self.clip_eps)
        return 1 - e, 1 + e


def etr(
    group_size: int = 8,
    clip_eps: float = 0.2,
    advantage_coef: float = 0.5,
    variance_coef: float = 0.5,
) -> Method:
    """-min(r A, clip(r, 1 - e, 1 + e) A) with e of each answer: `clip` widened by |A| and variance.

    `micro` = `variance_coef` = 0 is GRPO. A = (r - mean(r)) / std(r), rewards between 0 and 1.
    """
    # The abstract says what the width depends on and in which direction; the form and all numbers
    # here are our choice.
    return Method(
        sampler=GroupSampler(group_size),
        loss=ClipWithin(ElasticClipBounds(clip_eps, advantage_coef, variance_coef)),
    )
