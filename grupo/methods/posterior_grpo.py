"""Posterior-GRPO: reasoning is paid where the code passes. Fan et al., 2025, arXiv:2508.05170."""

from torch import Tensor

from grupo.algo.advantages import Center, ScaleByStd, chain
from grupo.algo.aggregation import token_mean
from grupo.algo.losses import Clip
from grupo.core.batch import Batch
from grupo.core.component import component
from grupo.core.numbers import NonNegative, PositiveInt
from grupo.core.paper import Paper, Source
from grupo.core.requires import Requires
from grupo.method import Method
from grupo.rollouts.samplers import GroupSampler


def posterior_grpo(
    group_size: PositiveInt = 8, clip_low: NonNegative = 0.2, clip_high: NonNegative = 0.28
) -> Method:
    """r = R_f + R_o + [R_o = 1] R_t: quality ranks the correct answers and cannot save a wrong one.

    Reward terms: "format", "correct" (all tests pass) and "thinking", a reward model's score in [0,
    1] of the reasoning alone. A = (r - mean(r)) / std(r).

    Args:
        group_size: rollouts per task (our choice).
        clip_low: ratios are clipped below at 1 - clip_low (a third party's value).
        clip_high: ratios are clipped above at 1 + clip_high (a third party's value).
    """
    return Method(
        sampler=GroupSampler(group_size),
        advantage=chain(PosteriorReward(), Center(), ScaleByStd()),
        loss=Clip(clip_low, clip_high),
        aggregation=token_mean,
    )


@component
class PosteriorReward:
    """r = f + o + [o = 1] t: format, outcome, and quality of the reasoning.

    Args:
        format_term: reward term of the format, 1 or 0.
        outcome_term: reward term of the outcome, 1 or 0.
        quality_term: reward term of the reasoning, in [0, 1].
    """

    format_term: str = "format"
    outcome_term: str = "correct"
    quality_term: str = "thinking"

    @property
    def requires(self) -> Requires:
        return Requires(reward_terms=(self.format_term, self.outcome_term, self.quality_term))

    def __call__(self, x: Tensor, batch: Batch) -> Tensor:
        f, o, t = (
            batch.reward_terms[name]
            for name in (self.format_term, self.outcome_term, self.quality_term)
        )
        return f + o + (o >= 1) * t


PAPER = Paper(
    title="Posterior-GRPO: Rewarding Reasoning Processes in Code Generation",
    use="A reward model scores the reasoning, and would be exploited if failures were paid.",
    tags=("reward",),
    checked=("golden", "properties", "run"),
    catalogue=("posterior-grpo",),
    source=Source(
        "third_party",
        "Wodlfvllf/grpo-composer: configs/papers/posterior_grpo.yaml and its reward calculator",
    ),
    plan="not stated in any source that was opened; one update per step",
    missing=(
        "The reward model of the reasoning and its training on improved and degraded reasoning.",
    ),
    deviations=(
        "Clips, token mean and no KL are a third party's configuration; group_size is our choice.",
    ),
    audit=(
        "reward, clips, aggregation and absence of KL compared with the third party's "
        "configuration; the paper could not be opened"
    ),
    shown=("docs/claims.md#judge",),
)
