"""ETR: the clip widens with advantage and reward variance. Zhang et al., 2026, arXiv:2601.03723."""

from torch import Tensor

from grupo.algo.losses import ClipWithin
from grupo.core import group_ops
from grupo.core.batch import Batch
from grupo.core.component import component
from grupo.core.numbers import NonNegative, NumberOrSchedule, PositiveInt
from grupo.core.paper import Paper, Source
from grupo.core.requires import Requires
from grupo.method import Method
from grupo.rollouts.samplers import GroupSampler


def etr(
    group_size: PositiveInt = 8,
    clip_eps: NonNegative = 0.2,
    advantage_coef: NonNegative = 0.5,
    variance_coef: NonNegative = 0.5,
) -> Method:
    """-min(r A, clip(r, 1 - e, 1 + e) A), e = clip_eps widened by |A| and the reward variance.

    advantage_coef = variance_coef = 0 is GRPO. A = (r - mean(r)) / std(r), rewards in [0, 1].

    Args:
        group_size: rollouts per task (our choice).
        clip_eps: clip at zero advantage and medium variance (our choice).
        advantage_coef: strength of the dependence on |A| (our choice).
        variance_coef: strength of the dependence on the variance (our choice).
    """
    return Method(
        sampler=GroupSampler(group_size),
        loss=ClipWithin(ElasticClipBounds(clip_eps, advantage_coef, variance_coef)),
    )


@component
class ElasticClipBounds:
    """Clip bounds 1 - e and 1 + e that depend on the advantage and on the group's reward variance.

    e = clip_eps (1 + advantage_coef tanh|A|) (1 + variance_coef (v - 1/2)), clamped to [clip_eps /
    2, 3 clip_eps]; v is 4 times the variance of the group's rewards, which is 1 where half of the
    rewards in {0, 1} are 1.

    Args:
        clip_eps: clip at zero advantage and v = 1/2.
        advantage_coef: strength of the dependence on |A|.
        variance_coef: strength of the dependence on the variance.
    """

    clip_eps: NonNegative = 0.2
    advantage_coef: NumberOrSchedule = 0.5
    variance_coef: NumberOrSchedule = 0.5

    requires = Requires(reward_range=(0.0, 1.0))

    def __call__(self, batch: Batch) -> tuple[Tensor, Tensor]:
        v = 4 * group_ops.population_std(batch.reward, batch.group) ** 2
        group = (1 + self.variance_coef * (v - 0.5))[batch.rollout, None].to(batch.advantage)
        e = self.clip_eps * (1 + self.advantage_coef * batch.advantage.abs().tanh()) * group
        e = e.clamp(0.5 * self.clip_eps, 3 * self.clip_eps)
        return 1 - e, 1 + e


PAPER = Paper(
    title="ETR: Outcome-Guided Elastic Trust Regions for Policy Optimization",
    use="Rewards are 0 or 1, and clear signals should move the policy further.",
    tags=("clipping",),
    equals_grpo_when="there is one update per step",
    checked=("golden", "properties", "run"),
    catalogue=("etr",),
    source=Source("abstract", "the abstract"),
    plan=(
        "not stated in any source that was opened; one update per step, at which the clip never "
        "acts"
    ),
    deviations=(
        (
            "The abstract gives what the width depends on and in which direction; the form, every "
            "constant, the mean over answers and no KL divergence are our choice."
        ),
    ),
    audit=(
        "compared with the abstract and with the catalogue's row; public notes on the paper repeat "
        "the abstract"
    ),
)
