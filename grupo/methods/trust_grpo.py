"""Trust-GRPO: a judge is paid heed as far as he is right. Fan et al., 2025, arXiv:2505.17018."""

from torch import Tensor

from grupo.algo.advantages import Center, ScaleByStd, chain
from grupo.algo.losses import KL, Clip
from grupo.core import group_ops
from grupo.core.batch import Batch
from grupo.core.component import component
from grupo.core.paper import Paper
from grupo.core.schedules import Exponential, as_float
from grupo.method import Method
from grupo.rollouts.samplers import GroupSampler

PAPER = Paper(
    title="SophiaVL-R1: Reinforcing MLLMs Reasoning with Thinking Reward",
    use="A judge scores whole chains of thought, and is not to be believed everywhere.",
    checked=("golden", "laws", "reference", "run"),
    catalogue=("sophiavl-trust-grpo",),
)


@component
class TrustWeightedReward:
    """r = a + trust weight t, trust = exp(min(0, mean t of the right - mean t of the wrong))."""

    thinking_coef: float
    outcome_term: str = "correct"
    quality_term: str = "thinking"

    @property
    def required_reward_terms(self) -> tuple[str, ...]:
        """The outcome, right from 1/2, and a judge's score in [0, 1] of the thinking."""
        return (self.outcome_term, self.quality_term)

    def __call__(self, x: Tensor, batch: Batch) -> Tensor:
        a, t = (batch.reward_terms[name] for name in self.required_reward_terms)
        right, g = a >= 0.5, batch.group
        gap = group_ops.mean_where(right, t, g) - group_ops.mean_where(~right, t, g)
        known = group_ops.max(a, g) >= 0.5  # with nobody right there is no gap
        trust = (gap.clamp(max=0) * known).exp()
        return a + trust * self.thinking_coef * t


def trust_grpo(
    group_size: int = 8, thinking_coef: float = 0.3, clip_eps: float = 0.2, kl_coef: float = 0.04
) -> Method:
    """r = a + gamma `thinking_coef` e^(-s / S) t, s of S steps; gamma < 1 where the wrong think better.

    Reward terms: "correct" and "thinking". A = (r - mean(r)) / std(r).
    """
    # The release asks its judge only about a >= 0.2, so that gamma is seldom below 1, and not at
    # all where all or none are right; its S is 500. The paper is followed.
    r = TrustWeightedReward(as_float(Exponential(thinking_coef)))
    return Method(
        sampler=GroupSampler(group_size),
        advantage=chain(r, Center(), ScaleByStd()),
        loss=Clip(clip_eps, clip_eps) + kl_coef * KL(),
    )
