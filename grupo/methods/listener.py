"""Listener: be right, and convince another. Gambashidze et al., 2025, arXiv:2506.22832."""

from torch import Tensor

from grupo.algo.advantages import Center, ScaleByStd, chain
from grupo.algo.losses import Clip
from grupo.core.batch import Batch
from grupo.core.component import piece
from grupo.core.paper import Paper
from grupo.method import Method
from grupo.rollouts.samplers import Independent

PAPER = Paper(
    title="Listener-Rewarded Thinking in VLMs for Image Preferences",
    use="A model picks the right image, and its reasoning argues for the other one.",
    checked=("golden", "laws", "run"),
    catalogue=("listener-rewarded-thinking",),
)


@piece
class Convincing:
    """r = f (1 + correct c + listener p), f the format, c right or wrong, p the listener's trust.

    p is paid only where it is above `least`.
    """

    correct: float = 0.5
    listener: float = 0.5
    least: float = 0.0
    reads_parts = ("format", "correct", "listener")  # the last: the true answer's probability

    def __call__(self, x: Tensor, batch: Batch) -> Tensor:
        p = batch.parts["listener"]
        paid = p * (p > self.least)
        earned = 1 + self.correct * batch.parts["correct"] + self.listener * paid
        return batch.parts["format"] * earned


def listener(
    group: int = 8, clip: float = 0.2, correct: float = 0.5, weight: float = 0.5, least: float = 0.0
) -> Method:
    """r = format + `correct` c + `weight` p, A = (r - mean(r)) / std(r); 0 if the format fails.

    p = parts["listener"]: what a frozen model that reads the question and the reasoning, its
    answer cut off, gives to the true answer.
    """
    # The coefficients are second-hand. That the format gates the rest, `least`, the group and the
    # clip are our choice.
    r = Convincing(correct, weight, least)
    return Method(
        sample=Independent(group), credit=chain(r, Center(), ScaleByStd()), loss=Clip(clip, clip)
    )
