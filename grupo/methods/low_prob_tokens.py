"""AR: improbable tokens get less advantage. Yang et al., 2025, arXiv:2505.12929."""

from torch import Tensor

from grupo.algo.advantages import Center, ScaleByStd, chain
from grupo.core.batch import Batch, broadcast_to_tokens
from grupo.core.component import component
from grupo.core.numbers import Fraction, PositiveInt
from grupo.core.paper import Paper
from grupo.method import Method
from grupo.rollouts.samplers import GroupSampler

PAPER = Paper(
    title="Do Not Let Low-Probability Tokens Over-Dominate in RL for LLMs",
    use="Rare tokens have the largest gradients and drown those of common tokens.",
    tags=("advantage",),
    checked=("golden", "properties", "reference", "run"),
)


@component
class ProbabilityWeight:
    """(probability_weight p + 1 - probability_weight) x, p the token's probability before the
    update.

    Args:
        probability_weight: weight of p (alpha in the paper).
    """

    probability_weight: Fraction

    def __call__(self, x: Tensor, batch: Batch) -> Tensor:
        p = batch.old_logp.masked_fill(~batch.mask, 0.0).exp()
        return (self.probability_weight * p + 1 - self.probability_weight) * broadcast_to_tokens(
            x, batch
        )


def low_prob_tokens(group_size: PositiveInt = 8, probability_weight: Fraction = 0.3) -> Method:
    """A = (probability_weight p + 1 - probability_weight) (r - mean(r)) / std(r), p = pi_old of the
    token.

    The paper's advantage reweighting on GRPO's loss: tokens of probability near 0 keep 1 -
    probability_weight of their advantage.

    Args:
        group_size: rollouts per task (our choice).
        probability_weight: weight of p (alpha in the paper) (authors' code: 0.3).
    """
    # 0.3 is from the authors' script with both of their remedies; the one with this alone has 0.2,
    # and for mathematics 0.1 is remembered. The other remedy, Lopti, updates improbable tokens
    # first: an update plan over tokens, not an advantage.
    return Method(
        sampler=GroupSampler(group_size),
        advantage=chain(Center(), ScaleByStd(), ProbabilityWeight(probability_weight)),
    )
