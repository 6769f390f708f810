"""What a head learns from beside the policy: the value of a critic, how a rollout will end."""

import torch
from torch.nn.functional import softplus

from grupo.algo.losses.base import Loss
from grupo.core.batch import Batch, PerAction, Signals
from grupo.core.component import component


@component
class ValueLoss(Loss):
    """(V - R)^2 with R = A + V_old, the lambda-return. A must not be whitened.

    L^VF of PPO, Schulman et al., arXiv:1707.06347, eq. 9.

    >>> from grupo.testing.batch_sizes import batch_of
    >>> batch = make_batch(group=[0], advantage=[0.5], signals={"value": [[0.25]]})
    >>> ValueLoss()(Signals(value=torch.tensor([[0.5]])), batch).tolist()  # R = 0.75
    [[0.0625]]
    """

    @property
    def required_signals(self) -> frozenset[str]:
        return frozenset({"value"})

    def __call__(self, pi: Signals, batch: Batch) -> PerAction:
        return (pi["value"] - batch.advantage - batch.signals["value"]) ** 2


@component
class ClippedValueLoss(ValueLoss):
    """max((V - R)^2, (V_old + clip(V - V_old, -clip, clip) - R)^2): as implementations often do.

    >>> from grupo.testing.batch_sizes import batch_of
    >>> batch = make_batch(group=[0], advantage=[1.0], signals={"value": [[0.0]]})
    >>> ClippedValueLoss(0.25)(Signals(value=torch.tensor([[0.5]])), batch).tolist()  # R = 1
    [[0.5625]]
    """

    clip_eps: float = 0.2

    def __call__(self, pi: Signals, batch: Batch) -> PerAction:
        old, R = batch.signals["value"], batch.advantage + batch.signals["value"]
        near = old + (pi["value"] - old).clamp(-self.clip_eps, self.clip_eps)
        return torch.max((pi["value"] - R) ** 2, (near - R) ** 2)


@component
class OutcomeValueLoss(Loss):
    """(V - r)^2 for every action: lambda_critic = 1, the Monte-Carlo return, as gamma = 1.

    VC-PPO, Yuan et al., arXiv:2503.01491.

    >>> from grupo.testing.batch_sizes import batch_of
    >>> batch = make_batch(group=[0], reward=[1.0])
    >>> OutcomeValueLoss()(Signals(value=torch.tensor([[0.5]])), batch).tolist()
    [[0.25]]
    """

    @property
    def required_signals(self) -> frozenset[str]:
        return frozenset({"value"})

    def __call__(self, pi: Signals, batch: Batch) -> PerAction:
        return (pi["value"] - batch.reward[batch.rollout, None].to(pi["value"])) ** 2


@component
class QualityLoss(Loss):
    """softplus(q) - r q at actions marked `scored`: cross-entropy of sigmoid(q), r in [0, 1].

    >>> from grupo.testing.batch_sizes import batch_of
    >>> batch = make_batch(group=[0], reward=[1.0], length=[2], signals={"step/score_position": [[0.0, 1.0]]})
    >>> QualityLoss()(Signals(quality=torch.tensor([[3.0, 0.0]])), batch)  # 0, log 2
    tensor([[0.0000, 0.6931]])
    """

    @property
    def required_signals(self) -> frozenset[str]:
        return frozenset({"quality", "step/score_position"})

    def __call__(self, pi: Signals, batch: Batch) -> PerAction:
        q, r = pi["quality"], batch.reward[batch.rollout, None].to(pi["quality"])
        return (softplus(q) - r * q) * (batch.signals["step/score_position"] > 0)
