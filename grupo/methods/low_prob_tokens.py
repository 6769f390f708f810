"""AR: improbable tokens get less advantage. Yang et al., 2025, arXiv:2505.12929."""

from torch import Tensor

from grupo.algo.advantages import Center, ScaleByStd, chain
from grupo.core.batch import Batch, broadcast_to_tokens
from grupo.core.component import component
from grupo.core.paper import Paper
from grupo.method import Method
from grupo.rollouts.samplers import GroupSampler

PAPER = Paper(
    title="Do Not Let Low-Probability Tokens Over-Dominate in RL for LLMs",
    use="Rare tokens, whose gradients are largest, drown what is learned about common ones.",
    checked=("golden", "laws", "reference", "run"),
)


@component
class ProbabilityWeight:
    """(alpha p + 1 - alpha) x, p the probability of the action before the update."""

    probability_weight: float

    def __call__(self, x: Tensor, batch: Batch) -> Tensor:
        p = batch.old_logp.masked_fill(~batch.mask, 0.0).exp()
        return (self.probability_weight * p + 1 - self.probability_weight) * broadcast_to_tokens(
            x, batch
        )


def low_prob_tokens(group_size: int = 8, probability_weight: float = 0.3) -> Method:
    """A = (`probability_weight` p + 1 - `probability_weight`) (r - mean(r)) / std(r), p = pi_old of the token.

    The paper's advantage reweighting on GRPO's loss: tokens of probability near 0 keep 1 - `probability_weight`.
    """
    # 0.3 is alpha in the authors' script with both of their remedies, 0.2 in the one with this
    # alone, 0.1 for mathematics as we remember it; group is our choice. The other remedy, Lopti,
    # updates improbable tokens before the others: a plan over tokens, not a credit.
    return Method(
        sampler=GroupSampler(group_size),
        advantage=chain(Center(), ScaleByStd(), ProbabilityWeight(probability_weight)),
    )
