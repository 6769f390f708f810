"""FSPO: the sequence clip grows with the root of the length. Mao et al., 2025, arXiv:2509.09177."""

from torch import Tensor

from grupo.algo import ratios
from grupo.algo.losses import ClipWithin
from grupo.core.batch import Batch
from grupo.core.component import component
from grupo.core.numbers import NonNegative, PositiveInt
from grupo.core.paper import Paper, Source
from grupo.method import Method
from grupo.rollouts.samplers import GroupSampler


def fspo(group_size: PositiveInt = 8, clip_width: NonNegative = 0.03) -> Method:
    """loss = mean over answers of -min(w A, clip(w, e^-b, e^b) A), w = prod_t r_t.

    b = clip_width sqrt(L), L the length of the answer; A = (r - mean(r)) / std(r).

    Args:
        group_size: rollouts per task (our choice).
        clip_width: b of an answer of one token (by an implementation that cites eq. 5: 0.03).
    """
    return Method(
        sampler=GroupSampler(group_size),
        loss=ClipWithin(RootLengthBounds(clip_width), ratios.product),
    )


@component
class RootLengthBounds:
    """Clip bounds e^-b and e^b, b = clip_width sqrt(L): independent noise grows with sqrt(L).

    Args:
        clip_width: b of an answer of one token.
    """

    clip_width: NonNegative

    def __call__(self, batch: Batch) -> tuple[Tensor, Tensor]:
        b = self.clip_width * batch.sequence_lengths[:, None].to(batch.old_logp).sqrt()
        return (-b).exp(), b.exp()


PAPER = Paper(
    title="Clip Your Sequences Fairly: Enforcing Length Fairness for Sequence-Level RL",
    use="Sequence ratios of long (or short) answers are clipped more often than others.",
    tags=("clipping", "importance-sampling", "length"),
    checked=("golden", "properties", "run"),
    source=Source(
        "third_party",
        "the abstract of version 2 and an implementation by other people that cites eq. 3 to 5",
    ),
    plan=(
        "not stated in any source that was opened; one update per step, at which the clip never "
        "acts"
    ),
    missing=(
        "The KL drift by which version 1 shifts the band.",
        (
            "The dual clip of the paper's runs, and their lower and upper bands of unequal width: "
            "public reviews mention both without values."
        ),
    ),
    deviations=(
        "The log-ratio of an answer is clamped to +-20 before the exponential.",
        (
            "No source that was opened states the paper's advantage, mean or KL divergence: GRPO's "
            "z-score, a mean over answers and no KL divergence are our choice."
        ),
    ),
    audit=(
        "band, ratio and minimum compared with an implementation by other people that cites eq. 3 "
        "to 5 and with the abstracts"
    ),
)
