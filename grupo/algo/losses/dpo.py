"""Preferences: a winner and a loser in each group, by what judges accept and by reward."""

from torch import Tensor
from torch.nn.functional import softplus

from grupo.algo.advantages.constraints import argmax_share
from grupo.algo.advantages.token_table import sum_per_rollout
from grupo.algo.losses.base import Loss
from grupo.algo.losses.contrastive import mean_per_rollout
from grupo.core import group_ops
from grupo.core.batch import Batch, PerAction, PerRollout, Signals, broadcast_to_tokens
from grupo.core.component import component


def winner_and_loser(
    reward: PerRollout, feasible: Tensor, group: Tensor
) -> tuple[PerRollout, PerRollout]:
    """1 for the best feasible and for the worst infeasible of each group, shared among equals.

    Where all are feasible the worst of them loses; where none is, nobody wins.

    >>> import torch
    >>> feasible = torch.tensor([True, True, False, True, True])
    >>> winner_and_loser(torch.tensor([1.0, 2.0, 3.0, 1.0, 2.0]), feasible, torch.tensor([0, 0, 0, 1, 1]))
    (tensor([0., 1., 0., 0., 1.]), tensor([0., 0., 1., 1., 0.]))
    """
    worse = ~feasible | (group_ops.min(feasible.to(reward), group) == 1)
    return argmax_share(reward, feasible, group), argmax_share(-reward, worse, group)


@component
class DPOBestWorst(Loss):
    """-log sigmoid(beta (h(y_w) - h(y_l))) - lam / |y_w| log pi(y_w), h = log(pi / pi_ref).

    The loss of a group stands at all its actions; 0 if it has no feasible rollout. CODPO of CGPO,
    Xu et al., arXiv:2409.20370.

    >>> from grupo.testing.batch_sizes import batch_of, moved
    >>> parts = {"feasible": [1.0, 0.0]}
    >>> batch = make_batch(group=[0, 0], reward=[1.0, 0.0], logp=-1.0, reward_terms=parts)
    >>> DPOBestWorst(beta=0.1, nll_coef=2.0)(moved(batch, [[0.0], [0.0]]), batch)  # log 2 + 2
    tensor([[2.6931],
            [2.6931]], dtype=torch.float64, grad_fn=<MulBackward0>)
    """

    beta: float
    nll_coef: float
    reward_term: str = "feasible"

    @property
    def required_signals(self) -> frozenset[str]:
        return frozenset({"logp@ref"})

    @property
    def required_reward_terms(self) -> tuple[str, ...]:
        """1 where all judges accept, else 0."""
        return (self.reward_term,)

    @property
    def couples_rows(self) -> bool:
        return True

    def __call__(self, pi: Signals, batch: Batch) -> PerAction:
        g, feasible = batch.group, batch.reward_terms[self.reward_term] == 1
        best, worst = (x.to(pi.logp) for x in winner_and_loser(batch.reward, feasible, g))
        h = sum_per_rollout(pi.logp - batch.signals["logp@ref"], batch)
        margin = group_ops.sum((best - worst) * h, g)
        likely = group_ops.sum(best * mean_per_rollout(pi.logp, batch), g)
        loss = softplus(-self.beta * margin) - self.nll_coef * likely
        return broadcast_to_tokens(loss * group_ops.sum(best, g), batch)
