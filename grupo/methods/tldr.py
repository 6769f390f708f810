"""TLDR: one policy for short, medium and long reasoning. Zhang et al., 2025, arXiv:2505.07961."""

from torch import Tensor

from grupo.algo.advantages import ByRewardTerm, Center, GroupedBy, ScaleByStd, chain
from grupo.algo.advantages.reward_shaping import value_for_label
from grupo.core.batch import Batch
from grupo.core.component import component
from grupo.core.paper import Paper
from grupo.method import Method
from grupo.rollouts.samplers import GroupSampler

PAPER = Paper(
    title="Making Small Language Models Efficient Reasoners: Intervention, Supervision,"
    " Reinforcement",
    use="A small model reasons at length, and the prompt is to say at what length.",
    checked=("golden", "laws", "run"),
    example="tldr(max_length=64)",
    catalogue=("tldr-length",),
)


@component
class LevelLengthPenalty:
    """x (1 - price(level) min(1, L / limit)): nothing is earned by a short wrong answer."""

    max_length: int
    length_coefs: tuple[float, ...]
    level_term: str = "level"

    @property
    def required_reward_terms(self) -> tuple[str, ...]:
        """The level that the prompt asked for: 0, 1, 2 ..."""
        return (self.level_term,)

    def __call__(self, x: Tensor, batch: Batch) -> Tensor:
        share = (batch.lengths / self.max_length).clamp(max=1)
        return x * (
            1 - value_for_label(self.length_coefs, batch.reward_terms[self.level_term]) * share
        )


def tldr(
    max_length: int, group_size: int = 8, length_coefs: tuple[float, ...] = (0.5, 0.25, 0.0)
) -> Method:
    """r' = r (1 - p L / `max_length`), p the price of the level; A among those of the same level.

    reward_terms["level"] is 0, 1 or 2: the prompt asked for short, medium or long. r >= 0.
    """
    # Only the abstract was seen: GRPO, regularised by length, of several levels. The form of the
    # penalty and all constants are our reading.
    compared = GroupedBy(chain(Center(), ScaleByStd()), ByRewardTerm("level"))
    return Method(
        sampler=GroupSampler(group_size),
        advantage=chain(LevelLengthPenalty(max_length, length_coefs), compared),
    )
