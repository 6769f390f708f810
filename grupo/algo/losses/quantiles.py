"""Preference losses by quantiles: pairs of equal rank in the batch are compared, as in AOT.

The losses compare two distributions of scores: the k-th smallest score of one side with the k-th
smallest score of the other side. The loss of a rank is placed on the actions of the group whose
pair has this rank, (N, T), so aggregate with `group_mean`. More pairs in a batch are more
quantiles.
"""

from jaxtyping import Float
from torch import Tensor

from grupo.algo.advantages.token_table import sum_per_rollout
from grupo.algo.losses.base import Loss
from grupo.algo.losses.pairs import Pairing, best_against_worst
from grupo.algo.losses.preference import Link
from grupo.algo.losses.scores import Score, rollout_logp
from grupo.core.batch import Batch, PerAction, Signals, broadcast_to_tokens
from grupo.core.component import component
from grupo.core.requires import Requires


def of_equal_rank(x: Float[Tensor, "K"], y: Float[Tensor, "K"]) -> Float[Tensor, "K"]:
    """For each entry of `x`, the entry of `y` that has the same rank, (K,).

    >>> import torch
    >>> of_equal_rank(torch.tensor([5.0, 1.0, 3.0]), torch.tensor([20.0, 30.0, 10.0]))
    tensor([30., 10., 20.])
    """
    return y.sort(stable=True).values[x.argsort(stable=True).argsort()]


@component
class PairedQuantiles(Loss):
    """Mean over the group's pairs of link(d - d_ref), d_ref of equal rank in the batch, (N, T).

    d is log pi(chosen) - log pi(rejected), d_ref the same of the reference policy. With one pair in
    the batch it is the loss of DPO. Source: AOT, Melnyk et al., arXiv:2406.05882, paired.

    Args:
        link: loss of a pair by its difference, see `grupo.algo.losses.links`.
        pairing: pairs of the rollouts of each group, see `grupo.algo.losses.pairs`.
        model: name of the reference model: "ref", or one of the recipe's auxiliary models.

    >>> from grupo.algo.losses.links import Hinge
    >>> from grupo.testing.batches import make_batch, perturb_logp
    >>> ref = {"logp@ref": [[-1.5], [-1.0], [-1.0], [-1.25]]}  # differences -0.5 and 0.25
    >>> batch = make_batch([0, 0, 1, 1], [1.0, 0.0, 1.0, 0.0], signals=ref)
    >>> pi = perturb_logp(batch, [[0.5], [0.0], [0.0], [0.0]])  # differences 0.5 and 0
    >>> PairedQuantiles(Hinge(1.0))(pi, batch)[:, 0].tolist()  # 0.5 - 0.25 and 0 + 0.5
    [0.75, 0.75, 0.5, 0.5]
    """

    link: Link
    pairing: Pairing = best_against_worst
    model: str = "ref"

    @property
    def requires(self) -> Requires:
        return Requires(signals=(f"logp@{self.model}",), coupled_rows=True, whole_batch=True)

    def __call__(self, pi: Signals, batch: Batch) -> PerAction:
        pairs = self.pairing(batch)
        reference = sum_per_rollout(batch.signals[f"logp@{self.model}"], batch)
        d, d_ref = (pairs.differences(x) for x in (rollout_logp(pi, batch), reference))
        loss = self.link(d - of_equal_rank(d, d_ref).to(d))
        return broadcast_to_tokens(pairs.group_means(loss, batch.group), batch)


@component
class UnpairedQuantiles(Loss):
    """Mean over the group's pairs of link(s(chosen) - s(rejected)), s of equal rank, (N, T).

    s is the score. Ranks are those in the whole batch: a chosen answer is compared with the
    rejected answer of the same rank, which may belong to another prompt. Source: AOT, Melnyk et
    al., arXiv:2406.05882, unpaired.

    Args:
        score: score of each rollout, `(pi, batch) -> (R,)`, see `grupo.algo.losses.scores`.
        link: loss of a pair by its difference, see `grupo.algo.losses.links`.
        pairing: pairs of the rollouts of each group, see `grupo.algo.losses.pairs`.

    >>> from grupo.algo.losses.links import Hinge
    >>> from grupo.algo.losses.scores import rollout_logp
    >>> from grupo.testing.batches import make_batch, perturb_logp
    >>> batch = make_batch([0, 0, 1, 1], [1.0, 0.0, 1.0, 0.0])
    >>> pi = perturb_logp(batch, [[0.5], [0.25], [0.0], [-0.5]])
    >>> UnpairedQuantiles(rollout_logp, Hinge(1.0))(pi, batch)[:, 0].tolist()
    [0.75, 0.75, 0.5, 0.5]
    """

    score: Score
    link: Link
    pairing: Pairing = best_against_worst

    requires = Requires(coupled_rows=True, whole_batch=True)

    def __call__(self, pi: Signals, batch: Batch) -> PerAction:
        pairs = self.pairing(batch)
        score = self.score(pi, batch)
        chosen, rejected = (side.mean(score, len(pairs)) for side in (pairs.chosen, pairs.rejected))
        loss = self.link(chosen - of_equal_rank(chosen, rejected))
        return broadcast_to_tokens(pairs.group_means(loss, batch.group), batch)
