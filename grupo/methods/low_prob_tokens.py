"""AR: improbable tokens get less advantage. Yang et al., 2025, arXiv:2505.12929."""

from torch import Tensor

from grupo.algo.advantages import Center, ScaleByStd, chain
from grupo.core.batch import Batch, spread
from grupo.core.component import piece
from grupo.core.paper import Paper
from grupo.method import Method
from grupo.rollouts.samplers import Independent

PAPER = Paper(
    title="Do Not Let Low-Probability Tokens Over-Dominate in RL for LLMs",
    use="Rare tokens, whose gradients are largest, drown what is learned about common ones.",
    checked=("golden", "laws", "reference", "run"),
)


@piece
class ByProbability:
    """(alpha p + 1 - alpha) x, p the probability of the action before the update."""

    alpha: float

    def __call__(self, x: Tensor, batch: Batch) -> Tensor:
        p = batch.old_logp.masked_fill(~batch.mask, 0.0).exp()
        return (self.alpha * p + 1 - self.alpha) * spread(x, batch)


def low_prob_tokens(group: int = 8, alpha: float = 0.3) -> Method:
    """A = (`alpha` p + 1 - `alpha`) (r - mean(r)) / std(r), p = pi_old of the token.

    The paper's advantage reweighting on GRPO's loss: tokens of probability near 0 keep 1 - `alpha`.
    """
    # 0.3 is alpha in the authors' script with both of their remedies, 0.2 in the one with this
    # alone, 0.1 for mathematics as we remember it; group is our choice. The other remedy, Lopti,
    # updates improbable tokens before the others: a plan over tokens, not a credit.
    return Method(
        sample=Independent(group), credit=chain(Center(), ScaleByStd(), ByProbability(alpha))
    )
