"""Format-length: form and length stand in for the truth. Xin et al., 2025, arXiv:2505.19439."""

import torch
from torch import Tensor

from grupo.algo.advantages import Center, ScaleByStd, chain
from grupo.algo.losses import KL, Clip
from grupo.core.batch import Batch
from grupo.core.component import piece
from grupo.core.paper import Paper
from grupo.method import Method
from grupo.rollouts.samplers import Independent

PAPER = Paper(
    title="Surrogate Signals from Format and Length: Reinforcement Learning for Solving"
    " Mathematical Problems without Ground Truth Answers",
    use="Mathematics without answers, from a base model that has yet to learn how answers look.",
    checked=("golden", "laws", "reference"),
    catalogue=("format-length-surrogate",),
)


@piece
class FormatAndLength:
    """r = f + l where the format f is right, min(0, f + l) elsewhere (eq. 5), of x = L / `limit`.

    l = 1 - (1 - x / p)^2 up to the peak p, and 1 - 2 ((x - p) / (1 - p))^2 beyond it (eq. 2).
    """

    limit: int
    peak: float = 0.5
    part: str = "format"

    @property
    def reads_parts(self) -> tuple[str, ...]:
        """Whether there is an answer that can be read: 1 or 0."""
        return (self.part,)

    def __call__(self, x: Tensor, batch: Batch) -> Tensor:
        f, p = batch.parts[self.part], self.peak
        share = (batch.lengths / self.limit).clamp(max=1)
        rising, falling = 1 - (1 - share / p) ** 2, 1 - 2 * ((share - p) / (1 - p)) ** 2
        r = f + torch.where(share <= p, rising, falling)
        return torch.where(f > 0.5, r, r.clamp(max=0))


def format_length(
    limit: int = 3072, group: int = 8, peak: float = 0.5, kl: float = 0.001
) -> Method:
    """r of format and length alone, A = (r - mean(r)) / std(r); no answer is ever compared.

    parts["format"] is 1 or 0; the best length is `peak` times `limit`, the generation budget.
    """
    # The released reward makes f the mean of two checks, the think block and the answer, and gives
    # min(0, l) where the answer fails; eq. 5 is followed. Clip 0.2 is verl's default.
    return Method(
        sample=Independent(group),
        credit=chain(FormatAndLength(limit, peak), Center(), ScaleByStd()),
        loss=Clip() + kl * KL(),
    )
