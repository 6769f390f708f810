"""GUI-G1: box rewards without length or difficulty bias. Zhou et al., 2025, arXiv:2505.15810."""

from torch import Tensor

from grupo.algo.advantages import Center, EachPart, chain, identity
from grupo.algo.aggregation import FixedLength
from grupo.algo.losses import Clip
from grupo.core.batch import Batch
from grupo.core.component import piece
from grupo.core.paper import Paper
from grupo.method import Method
from grupo.rollouts.samplers import Independent

PAPER = Paper(
    title="GUI-G1: Understanding R1-Zero-Like Training for Visual Grounding in GUI Agents",
    use="The answer is a box on a screen, and boxes grow or shrink to please the reward.",
    checked=("golden", "laws", "reference", "run"),
    catalogue=("gui-g1",),
)


@piece
class Times:
    """x w, with w the number `part` of each rollout."""

    part: str

    @property
    def reads_parts(self) -> tuple[str, ...]:
        """The factor."""
        return (self.part,)

    def __call__(self, x: Tensor, batch: Batch) -> Tensor:
        return x * batch.parts[self.part]


def gui_g1(group: int = 8, clip: float = 0.2, iou: float = 0.25, box: float = 0.125) -> Method:
    """A = w (r - mean(r)), r = hit + `iou` iou + `box` box; every token over one constant, 64.

    parts: those of `rewards.boxes.grounded`, 0 for what is no box; "difficulty", w > 0, more for
    small targets.
    """
    # Weights of r and the 64 are the released run's; how w follows from the target was not seen.
    r = EachPart(identity, (("hit", 1.0), ("iou", iou), ("box", box)))
    credit, loss = chain(r, Center(), Times("difficulty")), Clip(clip, clip)
    return Method(sample=Independent(group), credit=credit, loss=loss, weigh=FixedLength(64))
