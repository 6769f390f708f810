"""AR: improbable tokens get less advantage. Yang et al., 2025, arXiv:2505.12929."""

from torch import Tensor

from grupo.algo.advantages import Center, ScaleByStd, chain
from grupo.algo.minibatches import Updates
from grupo.core.batch import Batch, broadcast_to_tokens
from grupo.core.component import component
from grupo.core.numbers import Fraction, PositiveInt
from grupo.core.paper import Paper, Source
from grupo.method import Method
from grupo.rollouts.samplers import GroupSampler


def low_prob_tokens(group_size: PositiveInt = 8, probability_weight: Fraction = 0.2) -> Method:
    """A = (probability_weight p + 1 - probability_weight) (r - mean(r)) / std(r), p = pi_old of the
    token.

    The paper's advantage reweighting on GRPO's loss: tokens of probability near 0 keep 1 -
    probability_weight of their advantage.

    A step has 2 updates, each on a minibatch of its groups.

    Args:
        group_size: rollouts per task (authors' script: 8).
        probability_weight: weight of p (alpha in the paper) (authors' script: 0.2, and 0.3 together
            with their other remedy).
    """
    return Method(
        sampler=GroupSampler(group_size),
        advantage=chain(Center(), ScaleByStd(), ProbabilityWeight(probability_weight)),
        updates=Updates(minibatches=2),
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


PAPER = Paper(
    title="Do Not Let Low-Probability Tokens Over-Dominate in RL for LLMs",
    use="Rare tokens have the largest gradients and drown those of common tokens.",
    tags=("advantage",),
    checked=("golden", "properties", "reference", "run"),
    source=Source(
        "code",
        "zhyang2226/AR-Lopti: scripts/train_kklogic_AR_4x80GB.sh and compute_reweight_advantage",
    ),
    plan=(
        "train_kklogic_AR_4x80GB.sh: 64 prompts with 8 rollouts per step in minibatches of "
        "256 rollouts, 2 updates"
    ),
    missing=(
        (
            "Lopti, the other remedy, which updates improbable tokens first: an update plan "
            "over tokens, not an advantage."
        ),
        "The script's KL of 0.001, upper clip of 0.24 and dual clip of 10.",
        "The temperature of 0.7 at which the script samples.",
        "The value for mathematics: no script for it is in the repository.",
    ),
    deviations=(
        (
            "The loss is GRPO's mean over answers: the script's is over the tokens of 8 rollouts "
            "at a time."
        ),
        "The fork does not clamp the log-ratio, nor does the method.",
    ),
    audit=(
        "weight, constants and plan compared with the run scripts and the linear form in the fork"
    ),
    shown=("docs/claims.md#keys",),
)
