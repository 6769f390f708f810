"""Losses of value heads: the critic of PPO and its variants, predictors of success and of steps.

V is the output `pi["value"]` of the value head, V_old its output when the batch was generated.
"""

import torch
from torch.nn.functional import softplus

from grupo.algo.losses.base import Loss
from grupo.core.aux_heads import FeatureHead
from grupo.core.batch import Batch, PerAction, Signals
from grupo.core.component import check_field, component
from grupo.core.numbers import NonNegative
from grupo.core.requires import Requires


@component
class ValueLoss(Loss):
    """(V - R)^2 with the lambda-return R = A + V_old, (N, T). A must not be normalised.

    Source: L^VF of PPO, Schulman et al., arXiv:1707.06347, eq. 9.

    >>> from grupo.testing.batches import make_batch
    >>> batch = make_batch(group=[0], advantage=[0.5], signals={"value": [[0.25]]})
    >>> ValueLoss()(Signals(value=torch.tensor([[0.5]])), batch).tolist()  # R = 0.75
    [[0.0625]]
    """

    requires = Requires(signals=("value",), recomputed_signals=("value",))

    def __call__(self, pi: Signals, batch: Batch) -> PerAction:
        return (pi["value"] - batch.advantage - batch.signals["value"]) ** 2


@component
class ClippedValueLoss(ValueLoss):
    """max((V - R)^2, (V_old + clip(V - V_old, -clip_eps, clip_eps) - R)^2), (N, T).

    R = A + V_old. Not in the PPO paper; common in implementations.

    Args:
        clip_eps: largest change of the value that is rewarded.

    >>> from grupo.testing.batches import make_batch
    >>> batch = make_batch(group=[0], advantage=[1.0], signals={"value": [[0.0]]})
    >>> ClippedValueLoss(0.25)(Signals(value=torch.tensor([[0.5]])), batch).tolist()  # R = 1
    [[0.5625]]
    """

    clip_eps: NonNegative = 0.2

    def __call__(self, pi: Signals, batch: Batch) -> PerAction:
        old = batch.signals["value"]
        R = batch.advantage + old
        clipped = old + (pi["value"] - old).clamp(-self.clip_eps, self.clip_eps)
        return torch.max((pi["value"] - R) ** 2, (clipped - R) ** 2)


@component
class OutcomeValueLoss(Loss):
    """(V - r)^2 with the rollout's reward r as the target of every action, (N, T).

    This is the lambda-return with lambda_critic = 1 and gamma = 1.
    Source: VC-PPO, Yuan et al., arXiv:2503.01491.

    Args:
        head: the head `value`; None if another component of the method declares it.

    >>> from grupo.testing.batches import make_batch
    >>> batch = make_batch(group=[0], reward=[1.0])
    >>> OutcomeValueLoss()(Signals(value=torch.tensor([[0.5]])), batch).tolist()
    [[0.25]]
    """

    head: FeatureHead | None = None

    def __post_init__(self) -> None:
        if self.head:
            check_field(self, "head", self.head.name == "value", "a head of the name 'value'")

    @property
    def requires(self) -> Requires:
        return Requires(recomputed_signals=("value",), heads=(self.head,) if self.head else ())

    def __call__(self, pi: Signals, batch: Batch) -> PerAction:
        return (pi["value"] - batch.reward[batch.rollout, None].to(pi["value"])) ** 2


@component
class QualityLoss(Loss):
    """softplus(q) - r q at score positions, else 0, (N, T): cross-entropy of sigmoid(q) with r.

    q is the output of the `quality` head, r the rollout's reward in [0, 1]. The signal
    `step/score_position` is 1 for the actions at which partial rollouts were scored.

    >>> from grupo.testing.batches import make_batch
    >>> position = {"step/score_position": [[0.0, 1.0]]}
    >>> batch = make_batch(group=[0], reward=[1.0], length=[2], signals=position)
    >>> QualityLoss()(Signals(quality=torch.tensor([[3.0, 0.0]])), batch)  # 0, log 2
    tensor([[0.0000, 0.6931]])
    """

    requires = Requires(signals=("step/score_position",), recomputed_signals=("quality",))

    def __call__(self, pi: Signals, batch: Batch) -> PerAction:
        q = pi["quality"]
        r = batch.reward[batch.rollout, None].to(q)
        return (softplus(q) - r * q) * (batch.signals["step/score_position"] > 0)


@component
class StepValueLoss(Loss):
    """(V - v)^2 behind each step whose value v was measured, else 0, (N, T).

    V is the output of a head, v the signal `step/prefix_value`, where `step/prefix_cut` is 1.
    A sampler such as `TreeAnswers` sets both. The head is a process reward model with soft labels.
    Source: MedS3, Jiang et al., arXiv:2501.12051.

    Args:
        head: the head.

    >>> from grupo.core.aux_heads import LinearHead
    >>> from grupo.testing.batches import make_batch
    >>> steps = {"step/prefix_cut": [[1.0, 0.0]], "step/prefix_value": [[0.75, 0.0]]}
    >>> batch = make_batch(group=[0], reward=[1.0], length=[2], signals=steps)
    >>> pi = Signals(process=torch.tensor([[0.25, 9.0]]))
    >>> StepValueLoss(LinearHead("process"))(pi, batch).tolist()
    [[0.25, 0.0]]
    """

    head: FeatureHead

    @property
    def requires(self) -> Requires:
        return Requires(
            signals=("step/prefix_value", "step/prefix_cut"),
            recomputed_signals=(self.head.name,),
            heads=(self.head,),
        )

    def __call__(self, pi: Signals, batch: Batch) -> PerAction:
        V = pi[self.head.name]
        error = V - batch.signals["step/prefix_value"].to(V)
        return error**2 * (batch.signals["step/prefix_cut"] > 0)


@component
class StepCrossEntropy(Loss):
    """softplus(q) - v q behind each step of label v, else 0, (N, T): cross-entropy of sigmoid(q).

    q is the output of a head, v the signal `step/prefix_value`, where `step/prefix_cut` is 1. The
    labels are 0 or 1, or soft: the share of completions of the step that solve the task.
    Source: OmegaPRM, Luo et al., arXiv:2406.06592, section 3.4.

    Args:
        head: the head, whose output is a logit.

    >>> from grupo.core.aux_heads import LinearHead
    >>> from grupo.testing.batches import make_batch
    >>> steps = {"step/prefix_cut": [[1.0, 0.0]], "step/prefix_value": [[0.5, 0.0]]}
    >>> batch = make_batch(group=[0], length=[2], signals=steps)
    >>> StepCrossEntropy(LinearHead("process"))(Signals(process=torch.tensor([[0.0, 9.0]])), batch)
    tensor([[0.6931, 0.0000]])
    """

    head: FeatureHead

    @property
    def requires(self) -> Requires:
        return Requires(
            signals=("step/prefix_value", "step/prefix_cut"),
            recomputed_signals=(self.head.name,),
            heads=(self.head,),
        )

    def __call__(self, pi: Signals, batch: Batch) -> PerAction:
        q = pi[self.head.name]
        v = batch.signals["step/prefix_value"].to(q)
        return (softplus(q) - v * q) * (batch.signals["step/prefix_cut"] > 0)
