"""Regularisers: divergences from another policy, and entropy.

They are added to a policy loss with a coefficient: `Clip() + 0.001 * KL() + (-0.01) * Entropy()`.
"""

from collections.abc import Callable, Mapping

import torch
from torch import Tensor

from grupo.algo import divergences
from grupo.algo.losses.base import Loss
from grupo.core.batch import Batch, PerAction, Signals
from grupo.core.component import component
from grupo.core.numbers import NumberOrSchedule
from grupo.core.requires import Requires

KLEstimator = Callable[[Tensor, Tensor], Tensor]


@component
class KL(Loss):
    """Estimate of KL(pi || other) from the generated tokens, in nats, (N, T).

    Source: k3 against the reference policy is GRPO (arXiv:2402.03300), eq. 4.

    Args:
        estimator: function of `grupo.algo.divergences`.
        other_policy: name of the other policy, "ref" or a teacher.

    >>> from grupo.testing.batches import make_batch, perturb_logp
    >>> batch = make_batch(group=[0], logp=-1.0, signals={"logp@teacher": [[-1.5]]})
    >>> KL(divergences.k1, "teacher")(perturb_logp(batch, [[0.25]]), batch).tolist()
    [[0.75]]
    """

    estimator: KLEstimator = divergences.k3
    other_policy: str = "ref"

    @property
    def requires(self) -> Requires:
        return Requires(signals=(f"logp@{self.other_policy}",))

    def __call__(self, pi: Signals, batch: Batch) -> PerAction:
        return self.estimator(pi.logp, batch.signals[f"logp@{self.other_policy}"])

    def metrics(self, pi: Signals, batch: Batch) -> Mapping[str, Tensor]:
        other_logp = batch.signals[f"logp@{self.other_policy}"]
        return {f"policy/kl_{self.other_policy}": divergences.k3(pi.logp, other_logp)}


@component
class ReverseKL(Loss):
    """Exact KL(pi || other) of each state, summed over the vocabulary, in nats, (N, T).

    Args:
        other_policy: name of the other policy, "ref" or a teacher.

    >>> ReverseKL().requires
    Requires(recomputed_signals=['reverse_kl@ref'])
    """

    other_policy: str = "ref"

    @property
    def requires(self) -> Requires:
        return Requires(recomputed_signals=(f"reverse_kl@{self.other_policy}",))

    def __call__(self, pi: Signals, batch: Batch) -> PerAction:
        return pi[f"reverse_kl@{self.other_policy}"]

    def metrics(self, pi: Signals, batch: Batch) -> Mapping[str, Tensor]:
        return {f"policy/kl_{self.other_policy}": pi[f"reverse_kl@{self.other_policy}"]}


@component
class ForwardKL(Loss):
    """Exact KL(other || pi) of each state, summed over the vocabulary, in nats, (N, T).

    It makes the policy cover every token that the other policy generates.

    Args:
        other_policy: name of the other policy, "ref" or a teacher.

    >>> ForwardKL("teacher").requires
    Requires(recomputed_signals=['forward_kl@teacher'])
    """

    other_policy: str = "ref"

    @property
    def requires(self) -> Requires:
        return Requires(recomputed_signals=(f"forward_kl@{self.other_policy}",))

    def __call__(self, pi: Signals, batch: Batch) -> PerAction:
        return pi[f"forward_kl@{self.other_policy}"]

    def metrics(self, pi: Signals, batch: Batch) -> Mapping[str, Tensor]:
        return {f"policy/forward_kl_{self.other_policy}": pi[f"forward_kl@{self.other_policy}"]}


@component
class JSD(Loss):
    """Exact Jensen-Shannon divergence of each state, in nats, (N, T).

    (KL(pi || m) + KL(other || m)) / 2 with m = (pi + other) / 2.

    Args:
        other_policy: name of the other policy, "ref" or a teacher.

    >>> JSD("teacher").requires
    Requires(recomputed_signals=['jsd@teacher'])
    """

    other_policy: str = "ref"

    @property
    def requires(self) -> Requires:
        return Requires(recomputed_signals=(f"jsd@{self.other_policy}",))

    def __call__(self, pi: Signals, batch: Batch) -> PerAction:
        return pi[f"jsd@{self.other_policy}"]

    def metrics(self, pi: Signals, batch: Batch) -> Mapping[str, Tensor]:
        return {f"policy/jsd_{self.other_policy}": pi[f"jsd@{self.other_policy}"]}


@component
class Entropy(Loss):
    """H, the policy's entropy of each state, in nats, (N, T); a negative factor makes it a bonus.

    >>> Entropy().requires
    Requires(recomputed_signals=['entropy'])
    """

    requires = Requires(recomputed_signals=("entropy",))

    def __call__(self, pi: Signals, batch: Batch) -> PerAction:
        return pi.entropy


@component
class EntropyBonus(Loss):
    """-entropy_coef H, (N, T), with a coefficient that a schedule or controller may set and log.

    Args:
        entropy_coef: reward per nat; a number, a schedule, or a controller.

    >>> from grupo.core.controllers import TargetEntropy
    >>> EntropyBonus(TargetEntropy(target=0.2, step_size=0.005)).requires
    Requires(recomputed_signals=['entropy'])
    """

    entropy_coef: NumberOrSchedule

    requires = Requires(recomputed_signals=("entropy",))

    def __call__(self, pi: Signals, batch: Batch) -> PerAction:
        return -self.entropy_coef * pi.entropy

    def metrics(self, pi: Signals, batch: Batch) -> Mapping[str, Tensor]:
        return {"entropy_coef": torch.full_like(pi.entropy, self.entropy_coef)}


@component
class MetricsOnly(Loss):
    """The loss 0 that still logs the metrics of another loss, e.g. for a controller to read.

    Args:
        loss: the loss whose metrics are logged.

    >>> from grupo.testing.batches import make_batch, perturb_logp
    >>> batch = make_batch(group=[0])
    >>> MetricsOnly(KL())(perturb_logp(batch, [[0.5]]), batch).tolist()
    [[0.0]]
    """

    loss: Loss

    def __call__(self, pi: Signals, batch: Batch) -> PerAction:
        return torch.zeros_like(pi.logp)

    def metrics(self, pi: Signals, batch: Batch) -> Mapping[str, Tensor]:
        return self.loss.metrics(pi, batch)
