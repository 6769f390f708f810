"""CISPO: clip the weight of a token, keep its gradient. Chen et al., 2025, arXiv:2506.13585."""

from torch import Tensor

from grupo.algo import ratios
from grupo.algo.aggregation import token_mean
from grupo.algo.losses import Reweighted
from grupo.core.batch import Batch, Signals
from grupo.core.component import piece
from grupo.core.paper import Paper
from grupo.method import Method
from grupo.rollouts.samplers import Independent

PAPER = Paper(
    title="MiniMax-M1: Scaling Test-Time Compute Efficiently with Lightning Attention",
    use="Rare words such as 'however' are clipped away although reasoning turns on them.",
    trl="loss_type='cispo'; its epsilon_high is the cap itself: 1 + our high",
    verl="loss_mode='cispo', clip_ratio_high = our high; clip_ratio_low=1 for no lower bound",
    checked=("golden", "laws", "reference", "run"),
)


@piece
class ClippedRatio:
    """clip(r, 1 - low, 1 + high)."""

    low: float
    high: float

    def __call__(self, pi: Signals, batch: Batch) -> Tensor:
        return ratios.token(pi, batch).clamp(1 - self.low, 1 + self.high)


def cispo(group: int = 16, high: float = 4.0, low: float = 1.0) -> Method:
    """loss = mean over all tokens of -sg(clip(r, 1 - `low`, 1 + `high`)) A log pi.

    A = (r - mean(r)) / std(r). With `low` = 1 there is no lower bound.
    """
    # The paper sets no lower bound, tunes `high` and does not say to what: 4, weights of at most 5,
    # and groups of 16 are those of ScaleRL (arXiv:2510.13786).
    return Method(
        sample=Independent(group), loss=Reweighted(ClippedRatio(low, high)), weigh=token_mean
    )
