"""Generalised advantage estimation (GAE) with a learned value head.

Source: Schulman et al., arXiv:1506.02438.
"""

import torch
from torch import Tensor

from grupo.algo.advantages.token_table import (
    at_last_token,
    discounted_sum,
    from_token_table,
    shift_left,
    to_token_table,
)
from grupo.core.aux_heads import FeatureHead, LinearHead
from grupo.core.batch import Batch, PerAction
from grupo.core.component import component
from grupo.core.numbers import Fraction, Positive
from grupo.core.requires import Requires

VALUE_HEAD = LinearHead("value")


def gae(
    reward: PerAction, value: PerAction, batch: Batch, gamma: float, gae_lambda: float | Tensor
) -> PerAction:
    """A_t = d_t + gamma lambda A_(t+1) with d_t = r_t + gamma V_(t+1) - V_t; V = 0 after the end.

    Time runs over all rows of a rollout. Source: arXiv:1506.02438, eq. 16.

    Args:
        reward: reward of each token, (N, T).
        value: V of each state, (N, T).
        batch: provides mask, turns and rollouts.
        gamma: discount per token.
        gae_lambda: a number, or one per rollout, (R, 1).

    >>> from grupo.testing.batches import make_batch
    >>> batch = make_batch(group=[0], length=[2])
    >>> r, V = torch.tensor([[0.0, 1.0]]), torch.tensor([[0.25, 0.5]])
    >>> gae(r, V, batch, gamma=1.0, gae_lambda=0.5).tolist()  # d = 0.25, 0.5
    [[0.5, 0.5]]
    """
    r = to_token_table(reward, batch)
    V = to_token_table(value, batch)
    d = r + gamma * shift_left(V) - V
    return from_token_table(discounted_sum(d, gamma * gae_lambda), batch)


@component
class GAE:
    """Generalised advantage estimation; a reward per rollout (R,) is paid at its last token.

    Source: Schulman et al., arXiv:1506.02438, eq. 16.

    Args:
        gamma: discount per token.
        gae_lambda: 1 is the Monte-Carlo return minus V, 0 the one-step difference.
        value_head: the head that predicts V, of the name "value".

    >>> from grupo.testing.batches import make_batch
    >>> batch = make_batch(group=[0], length=[2], signals={"value": [[0.25, 0.5]]})
    >>> GAE(gamma=1.0, gae_lambda=0.5)(torch.tensor([1.0]), batch).tolist()  # d = 0.25, 0.5
    [[0.5, 0.5]]
    """

    gamma: Fraction = 1.0
    gae_lambda: Fraction = 0.95
    value_head: FeatureHead = VALUE_HEAD

    @property
    def requires(self) -> Requires:
        # `value`: output of the value head when the batch was generated
        return Requires(signals=("value",), heads=(self.value_head,))

    def __call__(self, x: Tensor, batch: Batch) -> PerAction:
        reward = x if x.ndim == 2 else at_last_token(x, batch)
        return gae(reward, batch.signals["value"], batch, self.gamma, self.gae_lambda)


@component
class LengthAdaptiveGAE(GAE):
    """GAE with lambda = max(0, 1 - 1 / (alpha L)) for a rollout of L tokens.

    `gae_lambda` is not used. Source: VAPO, Yue et al., arXiv:2504.05118.

    Args:
        gamma: discount per token.
        alpha: larger values bring lambda nearer to 1.

    >>> from grupo.testing.batches import make_batch
    >>> batch = make_batch(group=[0], length=[2], signals={"value": [[0.25, 0.5]]})
    >>> LengthAdaptiveGAE(alpha=1.0)(torch.tensor([1.0]), batch).tolist()  # lambda = 1 - 1 / 2
    [[0.5, 0.5]]
    """

    alpha: Positive = 0.05

    def __call__(self, x: Tensor, batch: Batch) -> PerAction:
        length = batch.lengths.clamp(min=1)
        gae_lambda = (1 - 1 / (self.alpha * length)).clamp(min=0)[:, None]
        reward = at_last_token(x, batch)
        return gae(reward, batch.signals["value"], batch, self.gamma, gae_lambda)


@component
class ExtendedGAE(GAE):
    """GAE that bootstraps truncated rollouts with their last value instead of a reward.

    After the end of a truncated rollout of l tokens V(s_l) := V(s_(l-1)); its reward is ignored.
    Source: T-PPO, Fan et al., arXiv:2506.15050.

    Args:
        gamma: discount per token.
        gae_lambda: see `GAE`.
        reward_term: name of the reward term that is 1 for truncated rollouts, else 0.

    >>> from grupo.testing.batches import make_batch
    >>> value, cut = {"value": [[0.25, 0.5]]}, {"cut": [1.0]}
    >>> batch = make_batch(group=[0], length=[2], signals=value, reward_terms=cut)
    >>> ExtendedGAE(gae_lambda=0.5)(torch.tensor([1.0]), batch).tolist()  # d = 0.25, 0
    [[0.25, 0.0]]
    """

    reward_term: str = "cut"

    @property
    def requires(self) -> Requires:
        return super().requires | Requires(reward_terms=(self.reward_term,))

    def __call__(self, x: Tensor, batch: Batch) -> PerAction:
        truncated = batch.reward_terms[self.reward_term] > 0
        value = batch.signals["value"]
        is_last = to_token_table(at_last_token(torch.ones_like(x), batch), batch)
        last_value = (to_token_table(value, batch) * is_last).sum(1)
        reward = at_last_token(x.where(~truncated, self.gamma * last_value), batch)
        return gae(reward, value, batch, self.gamma, self.gae_lambda)
