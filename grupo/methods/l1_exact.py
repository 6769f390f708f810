"""L1-Exact: every token off the budget costs. Aggarwal and Welleck, 2025, arXiv:2503.04697."""

from torch import Tensor

from grupo.algo.advantages import Center, ScaleByStd, chain
from grupo.core.batch import Batch
from grupo.core.component import piece
from grupo.core.paper import Paper
from grupo.method import Method
from grupo.rollouts.samplers import Independent

PAPER = Paper(
    title="L1: Controlling How Long A Reasoning Model Thinks With Reinforcement Learning",
    use="The prompt says how many tokens to think, and that is how many it should be.",
    checked=("golden", "laws", "reference", "run"),
)


@piece
class NearBudget:
    """x - price |budget - L|."""

    price: float
    budget: str = "budget"

    @property
    def reads_parts(self) -> tuple[str, ...]:
        """How many tokens the prompt asked for."""
        return (self.budget,)

    def __call__(self, x: Tensor, batch: Batch) -> Tensor:
        return x - self.price * (batch.parts[self.budget] - batch.lengths).abs()


def l1_exact(group: int = 8, price: float = 0.0003) -> Method:
    """LCPO-Exact: r = [right] - `price` |n - L|, n = parts["budget"] tokens asked for.

    A = (r - mean(r)) / std(r).
    """
    # The price is the paper's; the group is our choice.
    credit = chain(NearBudget(price), Center(), ScaleByStd())
    return Method(sample=Independent(group), credit=credit)
