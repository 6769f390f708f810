"""Trust-GRPO: a judge's scores are weighted by trust. Fan et al., 2025, arXiv:2505.17018."""

from torch import Tensor

from grupo.algo.advantages import Center, ScaleByStd, chain
from grupo.algo.losses import KL, Clip
from grupo.core import group_ops
from grupo.core.batch import Batch
from grupo.core.component import component
from grupo.core.numbers import NonNegative, NumberOrSchedule, PositiveInt
from grupo.core.paper import Paper, Source
from grupo.core.requires import Requires
from grupo.core.schedules import Exponential
from grupo.method import Method
from grupo.rollouts.samplers import GroupSampler


def trust_grpo(
    group_size: PositiveInt = 8,
    thinking_coef: NonNegative = 0.3,
    clip_eps: NonNegative = 0.2,
    kl_coef: NonNegative = 0.04,
) -> Method:
    """r = a + gamma thinking_coef e^(-s / S) t at step s of S; gamma < 1 where wrong rollouts score
    higher.

    Reward terms: "correct", a, and "thinking", t. A = (r - mean(r)) / std(r).

    Args:
        group_size: rollouts per task (authors' code: 8).
        thinking_coef: weight of the judge's score at the start.
        clip_eps: ratios are clipped to [1 - clip_eps, 1 + clip_eps].
        kl_coef: weight of the KL divergence from the reference policy (authors' code: 0.04).
    """
    reward = TrustWeightedReward(Exponential(thinking_coef))
    return Method(
        sampler=GroupSampler(group_size),
        advantage=chain(reward, Center(), ScaleByStd()),
        loss=Clip(clip_eps, clip_eps) + kl_coef * KL(),
    )


@component
class TrustWeightedReward:
    """r = a + gamma thinking_coef t, gamma = exp(min(0, mean t of correct - mean t of wrong)).

    Args:
        thinking_coef: weight of the judge's score.
        outcome_term: reward term of the outcome a, correct from 1/2.
        quality_term: reward term of the judge's score t in [0, 1].
    """

    thinking_coef: NumberOrSchedule
    outcome_term: str = "correct"
    quality_term: str = "thinking"

    @property
    def requires(self) -> Requires:
        return Requires(reward_terms=(self.outcome_term, self.quality_term))

    def __call__(self, x: Tensor, batch: Batch) -> Tensor:
        a, t = (batch.reward_terms[name] for name in (self.outcome_term, self.quality_term))
        correct = a >= 0.5
        g = batch.group
        gap = group_ops.mean_where(correct, t, g) - group_ops.mean_where(~correct, t, g)
        has_correct = group_ops.max(a, g) >= 0.5  # else there is no gap
        trust = (gap.clamp(max=0) * has_correct).exp()
        return a + trust * self.thinking_coef * t


PAPER = Paper(
    title="SophiaVL-R1: Reinforcing MLLMs Reasoning with Thinking Reward",
    use="A judge scores whole chains of thought and is not reliable everywhere.",
    tags=("multimodal", "reward"),
    checked=("golden", "properties", "reference", "run"),
    catalogue=("sophiavl-trust-grpo",),
    source=Source(
        "paper",
        (
            "eq. 1 to 6; kxfan2002/SophiaVL-R1, verl/workers/reward/custom.py and "
            "scripts/train_scripts/fullsets.yaml"
        ),
    ),
    plan="fullsets.yaml: rollout batch 16, global batch 16: one update per step",
    missing=(
        "The entropy bonus of 0.001 of fullsets.yaml.",
        "The top-p of 0.9 with which the release samples.",
        "The release's clamp of the log-ratio to +-10.",
    ),
    deviations=(
        (
            "The release judges only rollouts with a >= 0.2, so gamma is seldom below 1, and none "
            "where all or none are correct; its S is 500."
        ),
        "Rows count equally, as in GRPO; the released code averages over all tokens.",
    ),
    audit="trust, decay, constants and batch sizes compared with custom.py and fullsets.yaml",
    shown=(
        "docs/claims.md#judge",
        "docs/vision_shown/sophiavl.md#trust-grpo-thoughts-that-a-misled-judge-scores",
    ),
)
