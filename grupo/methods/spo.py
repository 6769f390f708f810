"""Single-stream PO: one rollout against its past. Xu and Ding, 2025, arXiv:2509.13232."""

from torch import Tensor

from grupo.algo.advantages import StandardiseAll, chain
from grupo.algo.aggregation import token_mean
from grupo.algo.losses import Clip
from grupo.core.batch import Batch
from grupo.core.component import piece
from grupo.core.paper import Paper
from grupo.method import Method
from grupo.rollouts.curricula import Undecided, tracked
from grupo.rollouts.samplers import Independent

PAPER = Paper(
    title="Single-stream Policy Optimization",
    use="A second rollout of a task costs too much, and every task comes back some day.",
    verl="the recipe spo of verl-recipe; forgets by the measured change of log-probabilities",
    checked=("golden", "laws", "reference", "run"),
    catalogue=("spo-single-stream",),
)


@piece
class AgainstThePast:
    """r - v, v of `tracked`."""

    forget: float

    def __call__(self, x: Tensor, batch: Batch) -> Tensor:
        return x - x.new_tensor([tracked(past, self.forget) for past in batch.past])[batch.group]


def spo(group: int = 1, forget: float = 0.875, low: float = 0.2, high: float = 0.28) -> Method:
    """A = whitened r - v, r in [0, 1]; v is the mean of a Beta that each new reward sharpens."""
    # The authors' code forgets 2^(-D / 0.06), held in [0.875, 0.96], D how far log-probabilities of
    # the task's last rollout have moved: not measured here. It can also start from old rollouts.
    asked, played = Undecided(forget), Independent(group)
    credit, loss = chain(AgainstThePast(forget), StandardiseAll()), Clip(low, high)
    return Method(asked, played, credit=credit, loss=loss, weigh=token_mean)
