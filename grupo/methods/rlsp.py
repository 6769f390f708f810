"""RLSP: pay for the search, too, and fine what is short. Ye et al., 2025, arXiv:2502.06773."""

from torch import Tensor

from grupo.algo.advantages import Center, ScaleByStd, chain
from grupo.algo.losses import KL, Clip
from grupo.core.batch import Batch
from grupo.core.component import component
from grupo.core.paper import Paper
from grupo.method import Method
from grupo.rollouts.samplers import GroupSampler

PAPER = Paper(
    title="On the Emergence of Thinking in LLMs I: Searching for the Right Intuition",
    use="A model answers at once where it should search, check and go back.",
    checked=("golden", "laws", "reference"),
    catalogue=("rlsp",),
)


@component
class SearchReward:
    """share (x - short / n) + (1 - share) e, n the length and e an effort in 0..1."""

    short_penalty: float = 1000.0
    outcome_weight: float = 0.8
    reward_term: str = "effort"

    @property
    def required_reward_terms(self) -> tuple[str, ...]:
        """How hard a judge that ignores the answer finds the rollout to have tried."""
        return (self.reward_term,)

    def __call__(self, x: Tensor, batch: Batch) -> Tensor:
        kept = x - self.short_penalty / batch.lengths.clamp(min=1)
        return (
            self.outcome_weight * kept
            + (1 - self.outcome_weight) * batch.reward_terms[self.reward_term]
        )


def rlsp(
    group_size: int = 8,
    clip_eps: float = 0.2,
    short_penalty: float = 1000.0,
    outcome_weight: float = 0.8,
    kl_coef: float = 0.05,
) -> Method:
    """A = (R - mean(R)) / std(R), R = `outcome_weight` (r - `short_penalty` / n) + (1 - `outcome_weight`) e, n the length.

    r: 1 right, 0 wrong, -1/2 without an answer; e = reward_terms["effort"], 1/2 where its judge failed.
    """
    # As released, but: n there is a quarter of the characters before the answer, here the actions;
    # PPO with a critic and one rollout there, the group here; the KL is in its reward. The fine is
    # not bounded: with short right answers keep `short_penalty` well below their length.
    return Method(
        sampler=GroupSampler(group_size),
        advantage=chain(SearchReward(short_penalty, outcome_weight), Center(), ScaleByStd()),
        loss=Clip(clip_eps, clip_eps) + kl_coef * KL(),
    )
