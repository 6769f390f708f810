"""E-GRPO: a wrong answer earns by the entities it found. Zhao et al., 2025, arXiv:2510.24694."""

import torch
from jaxtyping import Bool
from torch import Tensor

from grupo.algo.advantages import Center, Masked, ScaleByStd, chain
from grupo.algo.aggregation import token_mean
from grupo.algo.losses import Clip
from grupo.core import group_ops
from grupo.core.batch import Batch
from grupo.core.component import piece
from grupo.core.paper import Paper
from grupo.method import Method
from grupo.rollouts.samplers import Independent

PAPER = Paper(
    title="Repurposing Synthetic Data for Fine-grained Search Agent Supervision",
    use="Questions were made from entities that are known, and most groups are all wrong.",
    checked=("golden", "laws", "run"),
    catalogue=("e-grpo-entity",),
)


@piece
class NearMiss:
    """r = 1 right, `weight` m / max m wrong, 0 malformed or overlong; m the share found."""

    weight: float
    reads_parts = ("correct", "entities", "format", "overlong")  # a yes is above 1/2

    def __call__(self, x: Tensor, batch: Batch) -> Tensor:
        right, m, good, overlong = (batch.parts[name] for name in self.reads_parts)
        most = group_ops.max(m, batch.group)
        r = torch.where(right > 0.5, 1.0, self.weight * m / torch.where(most > 0, most, 1.0))
        return r * ((good > 0.5) & (overlong <= 0.5))


def finished(batch: Batch) -> Bool[Tensor, "R"]:
    """Who was not cut off for length."""
    return batch.parts["overlong"] <= 0.5


def e_grpo(group: int = 8, weight: float = 0.3, low: float = 0.2, high: float = 0.28) -> Method:
    """A = (r - mean(r)) / std(r), r of `NearMiss`; the overlong count in both and do not learn.

    parts: "correct", "entities" (the share that `rewards.closeness.found` in the thoughts, not in
    what tools return), "format", "overlong": out of tokens or tool calls (eq. 4 to 6).
    """
    # `weight` 0.3 is the paper's best; clip-higher without its numbers: DAPO's. Group: our choice.
    return Method(
        sample=Independent(group),
        credit=Masked(chain(NearMiss(weight), Center(), ScaleByStd()), finished),
        loss=Clip(low, high),
        weigh=token_mean,
    )
