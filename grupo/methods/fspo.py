"""FSPO: a sequence's clip grows with the root of its length. Mao et al., 2025, arXiv:2509.09177."""

from torch import Tensor

from grupo.algo import ratios
from grupo.algo.losses import ClipWithin
from grupo.core.batch import Batch
from grupo.core.component import component
from grupo.core.paper import Paper
from grupo.method import Method
from grupo.rollouts.samplers import GroupSampler

PAPER = Paper(
    title="Clip Your Sequences Fairly: Enforcing Length Fairness for Sequence-Level RL",
    use="Sequence ratios are clipped more often the longer, or the shorter, an answer is.",
    checked=("golden", "laws", "run"),
)


@component
class RootLengthBounds:
    """e^-b to e^b with b = width sqrt(L): noise of independent tokens grows with the root of L."""

    clip_width: float

    def __call__(self, batch: Batch) -> tuple[Tensor, Tensor]:
        b = self.clip_width * batch.mask.sum(1, keepdim=True).to(batch.old_logp).sqrt()
        return (-b).exp(), b.exp()


def fspo(group_size: int = 8, clip_width: float = 0.01) -> Method:
    """loss = mean over answers of -min(w A, clip(w, e^-b, e^b) A), w = prod_t r_t.

    b = `width` sqrt(L), L the answer's length; A = (r - mean(r)) / std(r).
    """
    # Abstract of version 3: the log-ratio of the sequence is clipped to a band that grows with
    # sqrt(L); version 1 shifts it by a KL drift, too. `width` and PPO's minimum are our choice.
    return Method(
        sampler=GroupSampler(group_size),
        loss=ClipWithin(RootLengthBounds(clip_width), ratios.product),
    )
