"""DPO within a group: the best feasible rollout against the worst infeasible one.

Source: CODPO of CGPO, Xu et al., arXiv:2409.20370.
"""

from torch import Tensor
from torch.nn.functional import softplus

from grupo.algo.advantages.constraints import argmax_share
from grupo.algo.advantages.token_table import sum_per_rollout
from grupo.algo.losses.base import Loss
from grupo.algo.losses.contrastive import mean_per_rollout
from grupo.core import group_ops
from grupo.core.batch import Batch, PerAction, PerRollout, Signals, broadcast_to_tokens
from grupo.core.component import component
from grupo.core.numbers import NonNegative, Number
from grupo.core.requires import Requires


def winner_and_loser(
    reward: PerRollout, feasible: Tensor, group: Tensor
) -> tuple[PerRollout, PerRollout]:
    """One-hot winner and loser of each group, (R,) each; ties share the 1 equally.

    The winner is the best feasible rollout; a group without any has no winner. The loser is the
    worst infeasible rollout, or the worst of all where all are feasible.

    Args:
        reward: rewards, (R,).
        feasible: mask of the rollouts that all judges accept, (R,).
        group: group labels, (R,).

    >>> import torch
    >>> reward = torch.tensor([1.0, 2.0, 3.0, 1.0, 2.0])
    >>> feasible = torch.tensor([True, True, False, True, True])
    >>> winner_and_loser(reward, feasible, torch.tensor([0, 0, 0, 1, 1]))
    (tensor([0., 1., 0., 0., 1.]), tensor([0., 0., 1., 1., 0.]))
    """
    all_feasible = group_ops.min(feasible.to(reward), group) == 1
    can_lose = ~feasible | all_feasible
    return argmax_share(reward, feasible, group), argmax_share(-reward, can_lose, group)


@component
class DPOBestWorst(Loss):
    """-log sigmoid(beta (h(y_w) - h(y_l))) - nll_coef / |y_w| log pi(y_w), h = log(pi / pi_ref).

    The loss of a group is placed on all its actions, (N, T), so aggregate with `group_mean`. It is
    0 for a group without a feasible rollout.
    Source: CODPO of CGPO, Xu et al., arXiv:2409.20370.

    Args:
        beta: inverse temperature of DPO.
        nll_coef: weight of the winner's mean log-likelihood.
        reward_term: name of the reward term that is 1 where all judges accept, else 0.

    >>> from grupo.testing.batches import make_batch, perturb_logp
    >>> feasible = {"feasible": [1.0, 0.0]}
    >>> batch = make_batch([0, 0], reward=[1.0, 0.0], logp=-1.0, reward_terms=feasible)
    >>> pi = perturb_logp(batch, [[0.0], [0.0]])
    >>> DPOBestWorst(beta=0.1, nll_coef=2.0)(pi, batch)  # log 2 + 2
    tensor([[2.6931],
            [2.6931]], dtype=torch.float64, grad_fn=<MulBackward0>)
    """

    beta: NonNegative
    nll_coef: Number
    reward_term: str = "feasible"

    @property
    def requires(self) -> Requires:
        return Requires(signals=("logp@ref",), reward_terms=(self.reward_term,), coupled_rows=True)

    def __call__(self, pi: Signals, batch: Batch) -> PerAction:
        group = batch.group
        feasible = batch.reward_terms[self.reward_term] == 1
        winner, loser = (x.to(pi.logp) for x in winner_and_loser(batch.reward, feasible, group))
        h = sum_per_rollout(pi.logp - batch.signals["logp@ref"], batch)
        margin = group_ops.sum((winner - loser) * h, group)
        winner_logp = group_ops.sum(winner * mean_per_rollout(pi.logp, batch), group)
        loss = softplus(-self.beta * margin) - self.nll_coef * winner_logp
        return broadcast_to_tokens(loss * group_ops.sum(winner, group), batch)
