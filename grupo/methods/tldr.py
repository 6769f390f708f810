"""TLDR: one policy for short, medium and long reasoning. Zhang et al., 2025, arXiv:2505.07961."""

from torch import Tensor

from grupo.algo.advantages import ByPart, Center, Regrouped, ScaleByStd, chain
from grupo.algo.advantages.reward_shaping import by_label
from grupo.core.batch import Batch
from grupo.core.component import piece
from grupo.core.paper import Paper
from grupo.method import Method
from grupo.rollouts.samplers import Independent

PAPER = Paper(
    title="Making Small Language Models Efficient Reasoners: Intervention, Supervision,"
    " Reinforcement",
    use="A small model reasons at length, and the prompt is to say at what length.",
    checked=("golden", "laws", "run"),
    example="tldr(limit=64)",
    catalogue=("tldr-length",),
)


@piece
class Levelled:
    """x (1 - price(level) min(1, L / limit)): nothing is earned by a short wrong answer."""

    limit: int
    prices: tuple[float, ...]
    level: str = "level"

    @property
    def reads_parts(self) -> tuple[str, ...]:
        """The level that the prompt asked for: 0, 1, 2 ..."""
        return (self.level,)

    def __call__(self, x: Tensor, batch: Batch) -> Tensor:
        share = (batch.lengths / self.limit).clamp(max=1)
        return x * (1 - by_label(self.prices, batch.parts[self.level]) * share)


def tldr(limit: int, group: int = 8, prices: tuple[float, ...] = (0.5, 0.25, 0.0)) -> Method:
    """r' = r (1 - p L / `limit`), p the price of the level; A among those of the same level.

    parts["level"] is 0, 1 or 2: the prompt asked for short, medium or long. r >= 0.
    """
    # Only the abstract was seen: GRPO, regularised by length, of several levels. The form of the
    # penalty and all constants are our reading.
    compared = Regrouped(chain(Center(), ScaleByStd()), ByPart("level"))
    return Method(sample=Independent(group), credit=chain(Levelled(limit, prices), compared))
