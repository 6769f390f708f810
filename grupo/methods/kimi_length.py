"""Kimi length penalty: prefers short correct answers. Kimi Team, 2025, arXiv:2501.12599."""

from torch import Tensor

from grupo.algo.advantages import Center, ScaleByStd, chain
from grupo.algo.advantages.reward_shaping import length_reward
from grupo.core.batch import Batch
from grupo.core.component import component
from grupo.core.numbers import NonNegative, NumberOrSchedule, PositiveInt
from grupo.core.paper import Paper, Source
from grupo.core.requires import Requires
from grupo.method import Method
from grupo.rollouts.samplers import GroupSampler


def kimi_length(group_size: PositiveInt = 8, length_coef: NonNegative = 1.0) -> Method:
    """GRPO on r + length_coef b, b from 1/2 for the shortest of the group to -1/2 for the longest.

    Reward terms: "correct". A = (r - mean(r)) / std(r). Section 2.3.3.

    Args:
        group_size: rollouts per task (our choice).
        length_coef: weight of the length bonus (our choice).
    """
    return Method(
        sampler=GroupSampler(group_size),
        advantage=chain(BrevityBonus(length_coef), Center(), ScaleByStd()),
    )


@component
class BrevityBonus:
    """x + length_coef b, b = 1/2 - (L - min L) / (max L - min L), at most 0 for incorrect answers.

    Args:
        length_coef: weight of the bonus.
        reward_term: reward term that is above 1/2 for a correct answer.
    """

    length_coef: NumberOrSchedule
    reward_term: str = "correct"

    @property
    def requires(self) -> Requires:
        return Requires(reward_terms=(self.reward_term,))

    def __call__(self, x: Tensor, batch: Batch) -> Tensor:
        return x + self.length_coef * length_reward(
            batch.reward_terms[self.reward_term] > 0.5, batch
        )


PAPER = Paper(
    title="Kimi k1.5: Scaling Reinforcement Learning with LLMs",
    use="Answers are correct and too long, relative to others of their group.",
    tags=("length", "reward"),
    checked=("golden", "properties", "run"),
    source=Source("paper", "section 2.3.3 of the report"),
    plan="not stated in any source that was opened; one update per step",
    missing=(
        (
            "The warm-up: the report adds the penalty after a first stage without it; use a "
            "schedule as weight."
        ),
    ),
    deviations=(
        "The loss is GRPO's: the report trains by mirror descent (`opmd`).",
        "length_coef 1 and group_size 8 are our choice.",
    ),
    audit="formula, equal lengths and warm-up compared with section 2.3.3 (copies of the report's "
    "text in public repositories)",
    shown=("docs/claims.md#padded",),
)
