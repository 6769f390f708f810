"""PPL shaping: likely answers and late tokens teach more. Deng et al., 2025, arXiv:2508.02260."""

import torch
from torch import Tensor

from grupo.algo.advantages import Center, ScaleByStd, StandardiseAll, chain
from grupo.algo.advantages.intrinsic import MeanOf
from grupo.algo.advantages.token_table import place
from grupo.algo.aggregation import token_mean
from grupo.algo.losses import Clip
from grupo.core import group_ops
from grupo.core.batch import Batch, PerAction, spread
from grupo.core.component import piece
from grupo.core.paper import Paper
from grupo.method import Method
from grupo.rollouts.samplers import Independent

PAPER = Paper(
    title="Decomposing the Entropy-Performance Exchange: The Missing Keys to Effective RL",
    use="Entropy has stopped falling and accuracy has stopped rising.",
    checked=("golden", "laws", "run"),
    catalogue=("ppl-position-shaping",),
)


@piece
class LikelyMore:
    """x max(0, 1 - alpha w), w the rollout's log-perplexity standardised over the batch."""

    alpha: float
    reads_whole_batch = True

    def __call__(self, x: Tensor, batch: Batch) -> Tensor:
        w = StandardiseAll(std=group_ops.population_std)(MeanOf(factor=-1.0)(x, batch), batch)
        return x * (1 - self.alpha * w).clamp(min=0)


@piece
class LateMore:
    """x + sign(x) gamma sigmoid(slope (l - middle)), l the action's place between 0 and 1."""

    gamma: float
    slope: float = 10.0
    middle: float = 0.5

    def __call__(self, x: Tensor, batch: Batch) -> PerAction:
        A, last = spread(x, batch), (batch.lengths - 1).clamp(min=1)[batch.rollout, None]
        bonus = self.gamma * torch.sigmoid(self.slope * (place(batch) / last - self.middle))
        return A + A.sign() * bonus


def ppl_position(group: int = 8, alpha: float = 0.01, gamma: float = 0.1) -> Method:
    """A' = A (1 - `alpha` w), then A' + sign(A') b: w says how unlikely the answer was, b how late.

    Both only make moves greater or smaller, never turn them. `alpha` = `gamma` = 0 is GRPO.
    """
    # The paper tries each alone, on the plateau of a run: set the other one to 0, and begin from a
    # checkpoint. Its constants were not seen: all are our choice, as is that no factor is negative.
    credit = chain(Center(), ScaleByStd(), LikelyMore(alpha), LateMore(gamma))
    return Method(sample=Independent(group), credit=credit, loss=Clip(0.2, 0.2), weigh=token_mean)
