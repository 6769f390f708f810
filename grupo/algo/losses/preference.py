"""Preference losses: each compares the two rollouts of a pair by one score.

DPO, LN-DPO, SimPO, IPO, hinge, cDPO, ORPO, MODPO and INPO are choices of score, link and margin.
The loss of a group is placed on all its actions, (N, T), so aggregate with `group_mean`.
"""

from collections.abc import Callable, Mapping

import torch
from jaxtyping import Float
from torch import Tensor

from grupo.algo.losses.base import Loss
from grupo.algo.losses.contrastive import mean_logp
from grupo.algo.losses.pairs import Pairing, Pairs, best_against_worst
from grupo.algo.losses.scores import Score
from grupo.core.batch import Batch, PerAction, Signals, broadcast_to_tokens
from grupo.core.component import component
from grupo.core.numbers import NumberOrSchedule
from grupo.core.requires import Requires

Link = Callable[[Tensor], Tensor]
Margin = Callable[[Pairs, Batch], Tensor]


def no_margin(pairs: Pairs, batch: Batch) -> Float[Tensor, "K"]:
    """Margin 0 for every pair, (K,).

    >>> from grupo.testing.batches import make_batch
    >>> batch = make_batch(group=[0, 0], reward=[1.0, 0.0])
    >>> no_margin(best_against_worst(batch), batch).tolist()
    [0.0]
    """
    return batch.reward.new_zeros(len(pairs))


@component
class ConstantMargin:
    """The same margin for every pair, (K,). Source: SimPO, Meng et al., arXiv:2405.14734, eq. 6.

    Args:
        margin: the margin, in the unit of the score.

    >>> from grupo.testing.batches import make_batch
    >>> batch = make_batch(group=[0, 0], reward=[1.0, 0.0])
    >>> ConstantMargin(0.5)(best_against_worst(batch), batch).tolist()
    [0.5]
    """

    margin: NumberOrSchedule

    def __call__(self, pairs: Pairs, batch: Batch) -> Float[Tensor, "K"]:
        return torch.full_like(no_margin(pairs, batch), self.margin)


@component
class RewardMargin:
    """sum_j c_j (r_j(chosen) - r_j(rejected)) over reward terms r_j, (K,).

    Source: MODPO, Zhou et al., arXiv:2310.03708.

    Args:
        coefficients: name of each reward term with its coefficient c_j.

    >>> from grupo.testing.batches import make_batch
    >>> short = {"short": [0.5, 1.0]}
    >>> batch = make_batch(group=[0, 0], reward=[1.0, 0.0], reward_terms=short)
    >>> RewardMargin((("short", 2.0),))(best_against_worst(batch), batch).tolist()
    [-1.0]
    """

    coefficients: tuple[tuple[str, NumberOrSchedule], ...]

    @property
    def requires(self) -> Requires:
        return Requires(reward_terms=[name for name, _ in self.coefficients])

    def __call__(self, pairs: Pairs, batch: Batch) -> Float[Tensor, "K"]:
        margin = no_margin(pairs, batch)
        for name, c in self.coefficients:
            margin = margin + c * pairs.differences(batch.reward_terms[name])
        return margin


@component
class Preference(Loss):
    """Mean over the group's pairs of link(score(chosen) - score(rejected) - margin), (N, T).

    It is 0 for a group without a pair.

    Args:
        score: score of each rollout, `(pi, batch) -> (R,)`, see `grupo.algo.losses.scores`.
        link: loss of a pair by its score difference, see `grupo.algo.losses.links`.
        pairing: pairs of the rollouts of each group, see `grupo.algo.losses.pairs`.
        margin: subtracted from the difference of each pair, `(pairs, batch) -> (K,)`.

    >>> from grupo.algo.losses.links import Logistic
    >>> from grupo.algo.losses.scores import LogRatio
    >>> from grupo.testing.batches import make_batch, perturb_logp
    >>> batch = make_batch(group=[0, 0], reward=[1.0, 0.0])
    >>> pi = perturb_logp(batch, [[1.5], [-0.5]])
    >>> Preference(LogRatio(), Logistic(beta=1.0))(pi, batch).tolist()  # -log sigmoid(2)
    [[0.1269280110429725], [0.1269280110429725]]
    """

    score: Score
    link: Link
    pairing: Pairing = best_against_worst
    margin: Margin = no_margin

    requires = Requires(coupled_rows=True)

    def __call__(self, pi: Signals, batch: Batch) -> PerAction:
        pairs = self.pairing(batch)
        loss = self.link(self._differences(pairs, pi, batch))
        return broadcast_to_tokens(pairs.group_means(loss, batch.group), batch)

    def metrics(self, pi: Signals, batch: Batch) -> Mapping[str, Tensor]:
        pairs = self.pairing(batch)
        z = self._differences(pairs, pi, batch).detach()
        numbers = {"preference_margin": z, "preference_accuracy": (z > 0).to(z)}
        return {
            name: broadcast_to_tokens(pairs.group_means(x, batch.group), batch)
            for name, x in numbers.items()
        }

    def _differences(self, pairs: Pairs, pi: Signals, batch: Batch) -> Float[Tensor, "K"]:
        """Score differences minus margins, of each pair."""
        z = pairs.differences(self.score(pi, batch))
        return z - self.margin(pairs, batch).to(z)


@component
class ChosenNLL(Loss):
    """-log pi(y) / |y| of the chosen rollouts y, the mean over the group's pairs, (N, T).

    Args:
        pairing: pairs of the rollouts of each group; a group without a pair has loss 0.

    >>> from grupo.testing.batches import make_batch, perturb_logp
    >>> batch = make_batch(group=[0, 0], reward=[1.0, 0.0], logp=-2.0)
    >>> ChosenNLL()(perturb_logp(batch, [[0.5], [0.0]]), batch).tolist()
    [[1.5], [1.5]]
    """

    pairing: Pairing = best_against_worst

    requires = Requires(coupled_rows=True)

    def __call__(self, pi: Signals, batch: Batch) -> PerAction:
        pairs = self.pairing(batch)
        nll = -pairs.chosen.mean(mean_logp(pi, batch), len(pairs))
        return broadcast_to_tokens(pairs.group_means(nll, batch.group), batch)
