"""DPO on numbered pairs whose label smoothing follows the visits of a search tree."""

from jaxtyping import Float
from torch import Tensor
from torch.nn.functional import softplus

from grupo.algo.losses.base import Loss
from grupo.algo.losses.pairs import Pairs
from grupo.algo.losses.scores import LogRatio, Score
from grupo.core.batch import Batch, PerAction, Signals, broadcast_to_tokens
from grupo.core.component import component
from grupo.core.numbers import Positive
from grupo.core.requires import Requires


def numbered_pairs(batch: Batch) -> Pairs:
    """Every two rollouts of a group with the same reward term "pair" and different rewards.

    >>> from grupo.testing.batches import make_batch
    >>> terms = {"pair": [0.0, 0.0, 1.0, 1.0]}
    >>> pairs = numbered_pairs(make_batch([0] * 4, [1.0, 0.0, 0.2, 0.7], reward_terms=terms))
    >>> pairs.chosen.rollout.tolist(), pairs.rejected.rollout.tolist()
    ([0, 3], [1, 2])
    """
    number, group = batch.reward_terms["pair"], batch.group
    is_pair = (group[:, None] == group[None]) & (number[:, None] == number[None])
    better = batch.reward[:, None] > batch.reward[None]
    chosen, rejected = (is_pair & better).nonzero(as_tuple=True)
    return Pairs.of_rollouts(chosen, rejected, group)


def visit_smoothed(z: Float[Tensor, "K"], noise: Float[Tensor, "K"], beta: float) -> Tensor:
    """-(1 - a) log sigmoid(beta z) - a log sigmoid(-beta z) of each pair, a the `noise`, (K,).

    >>> import torch
    >>> visit_smoothed(torch.tensor([2.0]), torch.tensor([0.25]), beta=0.1)
    tensor([0.6481])
    """
    return softplus(-beta * z) + noise * beta * z


@component
class SiblingPreference(Loss):
    """DPO on siblings of a search tree, with label smoothing by their visits, (N, T).

    The label smoothing of a pair is a = min(N_l / (N_w + N_l), 1/2). N_w and N_l are the visits of
    the chosen and the rejected step: the reward term "visits". The loss is the mean over the pairs
    of a group, see `numbered_pairs`; 0 for a group without a pair. Siblings of equal visits have no
    gradient while z = 0, so that only a search which prefers the better step teaches it.
    Source: MCTS-DPO, Xie et al., arXiv:2405.00451.

    Args:
        score: score of each rollout, `(pi, batch) -> (R,)`.
        beta: inverse temperature.

    >>> from grupo.testing.batches import make_batch, perturb_logp
    >>> terms = {"pair": [0.0, 0.0], "visits": [3.0, 1.0]}
    >>> old = {"logp@ref": [[-1.0], [-1.0]]}
    >>> batch = make_batch([0, 0], [1.0, 0.0], logp=-1.0, reward_terms=terms, signals=old)
    >>> pi = perturb_logp(batch, [[1.5], [-0.5]])  # z = 2
    >>> [round(x, 5) for (x,) in SiblingPreference()(pi, batch).tolist()]
    [0.64814, 0.64814]
    """

    score: Score = LogRatio()
    beta: Positive = 0.1

    requires = Requires(reward_terms=("pair", "visits"), coupled_rows=True)

    def __call__(self, pi: Signals, batch: Batch) -> PerAction:
        pairs = numbered_pairs(batch)
        z = pairs.differences(self.score(pi, batch))
        visits = batch.reward_terms["visits"].to(z)
        won, lost = (side.mean(visits, len(pairs)) for side in (pairs.chosen, pairs.rejected))
        noise = (lost / (won + lost).clamp(min=1)).clamp(max=0.5)
        loss = visit_smoothed(z, noise, self.beta)
        return broadcast_to_tokens(pairs.group_means(loss, batch.group), batch)
