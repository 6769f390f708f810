"""Posterior-GRPO: good thinking pays where the code runs. Fan et al., 2025, arXiv:2508.05170."""

from torch import Tensor

from grupo.algo.advantages import Center, ScaleByStd, chain
from grupo.algo.aggregation import token_mean
from grupo.algo.losses import Clip
from grupo.core.batch import Batch
from grupo.core.component import piece
from grupo.core.paper import Paper
from grupo.method import Method
from grupo.rollouts.samplers import Independent

PAPER = Paper(
    title="Posterior-GRPO: Rewarding Reasoning Processes in Code Generation",
    use="A reward model judges the reasoning, and would be fooled if it paid failures, too.",
    checked=("golden", "laws", "run"),
    catalogue=("posterior-grpo",),
)


@piece
class PaidOnSuccess:
    """r = f + o + [o = 1] t: format, outcome, and quality of the thinking."""

    format: str = "format"
    outcome: str = "correct"
    quality: str = "thinking"

    @property
    def reads_parts(self) -> tuple[str, ...]:
        """Format 1 or 0, outcome 1 or 0, quality in [0, 1]."""
        return (self.format, self.outcome, self.quality)

    def __call__(self, x: Tensor, batch: Batch) -> Tensor:
        f, o, t = (batch.parts[name] for name in self.reads_parts)
        return f + o + (o >= 1) * t


def posterior_grpo(group: int = 8, low: float = 0.2, high: float = 0.28) -> Method:
    """r = R_f + R_o + [R_o = 1] R_t: quality orders the right answers and cannot save a wrong one.

    parts: "format", "correct" (all tests pass), and "thinking", a reward model's score in [0, 1]
    that reads the thinking alone. A = (r - mean(r)) / std(r).
    """
    # Clip-higher, token mean and no KL are a third party's configuration; the group is our choice.
    return Method(
        sample=Independent(group),
        credit=chain(PaidOnSuccess(), Center(), ScaleByStd()),
        loss=Clip(low, high),
        weigh=token_mean,
    )
