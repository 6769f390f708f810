"""Self-improving SRPO: one policy learns to answer and to revise, from pairs of answers.

Source: Choi et al., arXiv:2406.01660. The loss of a group is placed on all its actions, (N, T), so
aggregate with `group_mean`.
"""

from grupo.algo.losses.base import Loss
from grupo.algo.losses.scores import Score
from grupo.core import group_ops
from grupo.core.batch import Batch, PerAction, PerRollout, Signals, broadcast_to_tokens
from grupo.core.component import component
from grupo.core.numbers import Fraction, Positive
from grupo.core.requires import Requires

TERMS = ("answer_is_chosen", "previous_is_chosen")  # 1 or 0; of no previous answer, 0.5


@component
class SelfImprovement(Loss):
    """The loss of self-improving SRPO, from the six rollouts of `SelfImprovingPairs`, (N, T).

    w is the chosen and l the rejected answer, h the score, h(w|l) that of w as a revision of l:
    (1 - a) [(1/2 - beta (h(w|l) - h(l|l)))^2 + (1/2 - beta (h(w|w) - h(l|w)))^2]
    + a (1/2 - beta/2 (h(w|l) + h(w) - h(l|w) - h(l)))^2, a the weight of the generator.

    Args:
        score: h, `(pi, batch) -> (R,)`.
        beta: weight of the KL divergence.
        generator_weight: weight of the generator's loss.

    >>> from grupo.algo.losses.scores import LogRatio
    >>> from grupo.testing.batches import make_batch, perturb_logp
    >>> rows = {TERMS[0]: [1.0, 0, 1, 1, 0, 0], TERMS[1]: [0.5, 0.5, 1, 0, 1, 0]}
    >>> batch = make_batch(group=[0] * 6, reward_terms=rows)
    >>> loss = SelfImprovement(LogRatio(), beta=1.0, generator_weight=0.5)
    >>> loss(perturb_logp(batch, [[0.0]] * 6), batch)[0].item()  # 0.25 and 0.5
    0.375
    """

    score: Score
    beta: Positive
    generator_weight: Fraction

    requires = Requires(reward_terms=TERMS, bounded_rewards=TERMS, coupled_rows=True)

    def __call__(self, pi: Signals, batch: Batch) -> PerAction:
        h, (answer, previous) = self.score(pi, batch), (batch.reward_terms[name] for name in TERMS)

        def score_of(is_chosen: float, previous_is_chosen: float = 0.5) -> PerRollout:
            selected = (answer == is_chosen) & (previous == previous_is_chosen)
            return group_ops.mean_where(selected, h, batch.group)

        after_chosen = score_of(1.0, 1.0) - score_of(0.0, 1.0)
        after_rejected = score_of(1.0, 0.0) - score_of(0.0, 0.0)
        both = score_of(1.0, 0.0) + score_of(1.0) - score_of(0.0, 1.0) - score_of(0.0)
        generator = (0.5 - self.beta / 2 * both) ** 2
        reviser = (0.5 - self.beta * after_rejected) ** 2 + (0.5 - self.beta * after_chosen) ** 2
        loss = self.generator_weight * generator + (1 - self.generator_weight) * reviser
        return broadcast_to_tokens(loss, batch)
