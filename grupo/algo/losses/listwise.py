"""Listwise preference losses: all rollouts of a group at once, in the order of their rewards.

Only the order of the rewards is read. The loss of a group is placed on all its actions, (N, T), so
aggregate with `group_mean`.
"""

from collections.abc import Callable

import torch
from jaxtyping import Float
from torch import Tensor

from grupo.algo.losses.base import Loss
from grupo.algo.losses.contrastive import mean_logp
from grupo.algo.losses.scores import Score, rollout_logp
from grupo.core import group_ops
from grupo.core.batch import Batch, PerAction, PerRollout, Signals, broadcast_to_tokens
from grupo.core.component import component
from grupo.core.numbers import Positive
from grupo.core.requires import Requires

MIN_PROBABILITY = 1e-12  # of a rollout at its places; bounds the logarithm


@component
class ParetoTarget:
    """1 / n for the n rollouts of the group that no other one dominates, 0 for the rest, (R,).

    A rollout dominates another if none of its objectives is lower and one is higher.
    Source: order-preserving GFlowNets, Chen and Mauch, arXiv:2310.00386.

    Args:
        objectives: names of the reward terms to compare; without any, the total reward.

    >>> from grupo.testing.batches import make_batch
    >>> terms = {"right": [1.0, 0.0, 0.0], "short": [0.0, 1.0, 0.0]}
    >>> ParetoTarget(("right", "short"))(make_batch([0, 0, 0], reward_terms=terms)).tolist()
    [0.5, 0.5, 0.0]
    """

    objectives: tuple[str, ...] = ()

    @property
    def requires(self) -> Requires:
        return Requires(reward_terms=self.objectives)

    def __call__(self, batch: Batch) -> PerRollout:
        values = [batch.reward_terms[name] for name in self.objectives] or [batch.reward]
        x = torch.stack(values, -1)
        higher, not_lower = (x[:, None] > x[None]).any(-1), (x[:, None] >= x[None]).all(-1)
        same_group = batch.group[:, None] == batch.group[None]
        is_dominated = (same_group & higher & not_lower).any(0)
        share = (~is_dominated).to(batch.reward)
        return share / group_ops.sum(share, batch.group)


@component
class OrderPreserving(Loss):
    """-sum over the group of t_i log q_i, q = softmax of the scores, t the target, (N, T).

    If the scores are log-likelihoods, q is the policy restricted to the rollouts of the group. A
    GFlowNet has the same q, because its normaliser cancels.
    Source: order-preserving GFlowNets, Chen and Mauch, arXiv:2310.00386.

    Args:
        score: score of each rollout, `(pi, batch) -> (R,)`.
        target: t, `batch -> (R,)`, which sums to 1 in each group.

    >>> from grupo.testing.batches import make_batch, perturb_logp
    >>> batch = make_batch(group=[0, 0, 0], reward=[0.0, 1.0, 0.0], logp=-2.0)
    >>> pi = perturb_logp(batch, [[1.0], [0.0], [-1.0]])
    >>> OrderPreserving()(pi, batch)[0].item()  # q = (0.665, 0.245, 0.090)
    1.4076059644443804
    """

    score: Score = rollout_logp
    target: Callable[[Batch], Tensor] = ParetoTarget()

    requires = Requires(coupled_rows=True)

    def __call__(self, pi: Signals, batch: Batch) -> PerAction:
        s = self.score(pi, batch)
        log_q = s - group_ops.logsumexp(s, batch.group)
        loss = -group_ops.sum(self.target(batch).to(s) * log_q, batch.group)
        return broadcast_to_tokens(loss, batch)


def soft_permutation(x: Float[Tensor, "n"], steepness: float) -> Float[Tensor, "n n"]:
    """The permutation that sorts `x` in descending order, relaxed: entry (k, i) for x_i at place k.

    An odd-even network of n layers, whose comparators swap with a probability: the Cauchy
    distribution function of steepness x difference. Rows and columns sum to 1.
    Source: Petersen et al., arXiv:2203.09630.

    Args:
        x: values, (n,).
        steepness: inverse width of a comparator; the limit of a large one is the permutation.

    >>> soft_permutation(torch.tensor([0.0, 1.0]), steepness=1.0)  # 1/2 + atan(1) / pi
    tensor([[0.2500, 0.7500],
            [0.7500, 0.2500]])
    """
    n = len(x)
    permutation = torch.eye(n, dtype=x.dtype, device=x.device)
    for layer in range(n):
        upper = torch.arange(layer % 2, n - 1, 2, device=x.device)
        keep = torch.atan(steepness * (x[upper] - x[upper + 1])) / torch.pi + 0.5
        swap = _comparators(upper, keep, n)
        x, permutation = swap @ x, swap @ permutation
    return permutation


def _comparators(upper: Tensor, keep: Float[Tensor, "c"], n: int) -> Float[Tensor, "n n"]:
    """A layer of a network as a matrix: places `upper` and below mix with probability 1 - keep."""
    single = torch.ones(n, dtype=keep.dtype, device=keep.device)
    single[upper], single[upper + 1] = 0, 0
    lower = upper + 1
    row = torch.cat([upper, lower, upper, lower])
    column = torch.cat([upper, lower, lower, upper])
    values = torch.cat([keep, keep, 1 - keep, 1 - keep])
    return single.diag().index_put((row, column), values)


@component
class SortingNetwork(Loss):
    """-log of the probability that sorting by score puts a rollout where its reward does, (N, T).

    The loss of a group is the mean over its rollouts. The scores are sorted by `soft_permutation`;
    rollouts of equal reward share their places. The network reads the rollouts in the order of
    their rewards, so that the order of the batch does not matter.
    Source: GroCo, Shvetsova et al., arXiv:2301.02009.

    Args:
        score: score of each rollout, `(pi, batch) -> (R,)`.
        steepness: inverse width of the network's comparators, per unit of the score.

    >>> from grupo.testing.batches import make_batch, perturb_logp
    >>> batch = make_batch(group=[0, 0], reward=[1.0, 0.0], logp=-2.0)
    >>> pi = perturb_logp(batch, [[1.0], [0.0]])
    >>> SortingNetwork(steepness=1.0)(pi, batch)[0].item()  # -log 0.75
    0.2876820724517809
    """

    score: Score = mean_logp
    steepness: Positive = 1.0

    requires = Requires(coupled_rows=True)

    def __call__(self, pi: Signals, batch: Batch) -> PerAction:
        s = self.score(pi, batch)
        loss = s * 0.0
        for label in batch.group.unique():
            members = (batch.group == label).nonzero()[:, 0]
            order = _by_reward_then_score(batch.reward[members], s[members])
            members = members[order]
            loss = loss.index_put((members,), self._group_loss(s[members], batch.reward[members]))
        return broadcast_to_tokens(loss, batch)

    def _group_loss(self, s: Float[Tensor, "n"], reward: Float[Tensor, "n"]) -> Tensor:
        """The loss of a group whose rewards are in descending order."""
        permutation = soft_permutation(s, self.steepness)
        is_own_place = reward[:, None] == reward[None]
        probability = (permutation * is_own_place).sum(0).clamp(min=MIN_PROBABILITY)
        return -probability.log().mean()


def _by_reward_then_score(reward: Float[Tensor, "n"], s: Float[Tensor, "n"]) -> Tensor:
    """The order of descending rewards; equal rewards by descending score."""
    by_score = s.detach().argsort(descending=True)
    return by_score[reward[by_score].argsort(descending=True, stable=True)]
