"""L1-Max: the budget is a ceiling, and a soft one. Aggarwal and Welleck, 2025, arXiv:2503.04697."""

from torch import Tensor

from grupo.algo.advantages import Center, ScaleByStd, chain
from grupo.core.batch import Batch
from grupo.core.component import piece
from grupo.core.paper import Paper
from grupo.method import Method
from grupo.rollouts.samplers import Independent

PAPER = Paper(
    title="L1: Controlling How Long A Reasoning Model Thinks With Reinforcement Learning",
    use="The prompt says how many tokens to think at most.",
    checked=("golden", "laws", "reference", "run"),
)


@piece
class WithinBudget:
    """x clip(price (budget - L) + start, 0, 1)."""

    price: float
    start: float
    budget: str = "budget"

    @property
    def reads_parts(self) -> tuple[str, ...]:
        """How many tokens the prompt allowed."""
        return (self.budget,)

    def __call__(self, x: Tensor, batch: Batch) -> Tensor:
        left = batch.parts[self.budget] - batch.lengths
        return x * (self.price * left + self.start).clamp(0, 1)


def l1_max(group: int = 8, price: float = 0.0003, start: float = 0.5) -> Method:
    """LCPO-Max: r = [right] clip(`price` (n - L) + `start`, 0, 1), n = parts["budget"] tokens.

    `start` is what an answer of exactly n tokens keeps. A = (r - mean(r)) / std(r).
    """
    # Both constants are the paper's; the group is our choice. The released code has
    # (clip(alpha (n - L), -1, 1) + 1) / 2: its alpha is twice `price`.
    credit = chain(WithinBudget(price, start), Center(), ScaleByStd())
    return Method(sample=Independent(group), credit=credit)
