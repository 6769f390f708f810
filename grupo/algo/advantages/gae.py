"""Generalised advantage estimation: what a value head expected against what came, per action."""

import torch
from torch import Tensor

from grupo.algo.advantages.token_table import (
    at_last_token,
    discounted_sum,
    from_token_table,
    shift_left,
    to_token_table,
)
from grupo.core.aux_heads import AuxHead, LinearHead
from grupo.core.batch import Batch, PerAction
from grupo.core.component import component


def gae(
    reward: PerAction, value: PerAction, batch: Batch, gamma: float, gae_lambda: float | Tensor
) -> PerAction:
    """A_t = d_t + gamma lam A_(t+1) with d_t = r_t + gamma V_(t+1) - V_t, and V = 0 after the end.

    Generalised advantage estimation, arXiv:1506.02438, eq. 16; `lam` is a number, or one per
    rollout (R, 1).

    >>> from grupo.testing.batch_sizes import batch_of
    >>> batch = make_batch(group=[0], length=[2])
    >>> r, V = torch.tensor([[0.0, 1.0]]), torch.tensor([[0.25, 0.5]])
    >>> gae(r, V, batch, gamma=1.0, gae_lambda=0.5).tolist()  # d = 0.25, 0.5
    [[0.5, 0.5]]
    """
    r, V = to_token_table(reward, batch), to_token_table(value, batch)
    d = r + gamma * shift_left(V) - V
    return from_token_table(discounted_sum(d, gamma * gae_lambda), batch)


@component
class GAE:
    """Generalised advantage estimation with the value head: a reward (R,) is paid at the end.

    Schulman et al., arXiv:1506.02438, eq. 16.

    >>> from grupo.testing.batch_sizes import batch_of
    >>> batch = make_batch(group=[0], length=[2], signals={"value": [[0.25, 0.5]]})
    >>> GAE(gamma=1.0, gae_lambda=0.5)(torch.tensor([1.0]), batch).tolist()  # d = 0.25, 0.5
    [[0.5, 0.5]]
    """

    gamma: float = 1.0
    gae_lambda: float = 0.95

    @property
    def required_signals(self) -> frozenset[str]:
        """What the head said when the batch was sampled."""
        return frozenset({"value"})

    @property
    def aux_heads(self) -> tuple[AuxHead, ...]:
        """The value head."""
        return (LinearHead("value"),)

    def __call__(self, x: Tensor, batch: Batch) -> PerAction:
        paid = x if x.ndim == 2 else at_last_token(x, batch)
        return gae(paid, batch.signals["value"], batch, self.gamma, self.gae_lambda)


@component
class LengthAdaptiveGAE(GAE):
    """GAE with lambda = 1 - 1 / (alpha l) for a rollout of l actions, not below 0.

    VAPO, Yue et al., arXiv:2504.05118.

    >>> from grupo.testing.batch_sizes import batch_of
    >>> batch = make_batch(group=[0], length=[2], signals={"value": [[0.25, 0.5]]})
    >>> LengthAdaptiveGAE(alpha=1.0)(torch.tensor([1.0]), batch).tolist()  # lambda = 1 - 1 / 2
    [[0.5, 0.5]]
    """

    alpha: float = 0.05

    def __call__(self, x: Tensor, batch: Batch) -> PerAction:
        lam = (1 - 1 / (self.alpha * batch.lengths.clamp(min=1))).clamp(min=0)[:, None]
        return gae(at_last_token(x, batch), batch.signals["value"], batch, self.gamma, lam)


@component
class ExtendedGAE(GAE):
    """GAE where a rollout that was cut has V(s_l) := V(s_(l-1)) after its end, and no reward.

    T-PPO, Fan et al., arXiv:2506.15050.

    >>> from grupo.testing.batch_sizes import batch_of
    >>> seen, parts = {"value": [[0.25, 0.5]]}, {"cut": [1.0]}
    >>> batch = make_batch(group=[0], length=[2], signals=seen, reward_terms=parts)
    >>> ExtendedGAE(gae_lambda=0.5)(torch.tensor([1.0]), batch).tolist()  # d = 0.25, 0
    [[0.25, 0.0]]
    """

    reward_term: str = "cut"

    @property
    def required_reward_terms(self) -> tuple[str, ...]:
        """The component that is 1 for a rollout that was cut, 0 for a finished one."""
        return (self.reward_term,)

    def __call__(self, x: Tensor, batch: Batch) -> PerAction:
        cut, value = batch.reward_terms[self.reward_term] > 0, batch.signals["value"]
        end = to_token_table(at_last_token(torch.ones_like(x), batch), batch)
        last = (to_token_table(value, batch) * end).sum(1)
        paid = at_last_token(x.where(~cut, self.gamma * last), batch)
        return gae(paid, value, batch, self.gamma, self.gae_lambda)
