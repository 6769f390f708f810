"""KL losses whose gradient is an unbiased gradient of KL, on policy or off policy."""

from collections.abc import Callable, Mapping

from torch import Tensor

from grupo.algo import divergences, ratios
from grupo.algo.losses.base import Loss
from grupo.algo.losses.regularizers import KL, KLEstimator
from grupo.core.batch import Batch, PerAction, Signals
from grupo.core.component import component
from grupo.core.requires import Requires


@component
class StraightThroughKL(Loss):
    """The value of one estimator of KL(pi || other) with the gradient of another, (N, T).

    By default the value is k3, unbiased and non-negative, and the gradient that of k2, which on
    policy is the gradient of KL. Source: arXiv:2510.01555.

    Args:
        value_estimator: function of `grupo.algo.divergences` for the value.
        gradient_estimator: function of `grupo.algo.divergences` for the gradient.
        other_policy: name of the other policy, "ref" or a teacher.

    >>> from grupo.testing.batches import make_batch, perturb_logp
    >>> batch = make_batch(group=[0], logp=-1.0, signals={"logp@ref": [[-1.0]]})
    >>> pi = perturb_logp(batch, [[0.5]])
    >>> loss = StraightThroughKL()(pi, batch)  # k3 = e^-0.5 + 0.5 - 1, and k2' = 0.5
    >>> loss.sum().backward()
    >>> loss.tolist(), pi.logp.grad.tolist()
    ([[0.10653065971263342]], [[0.5]])
    """

    value_estimator: KLEstimator = divergences.k3
    gradient_estimator: KLEstimator = divergences.k2
    other_policy: str = "ref"

    @property
    def requires(self) -> Requires:
        return Requires(signals=(f"logp@{self.other_policy}",), surrogate_gradient=True)

    def __call__(self, pi: Signals, batch: Batch) -> PerAction:
        other_logp = batch.signals[f"logp@{self.other_policy}"]
        with_gradient = self.gradient_estimator(pi.logp, other_logp)
        value = self.value_estimator(pi.logp, other_logp)
        return with_gradient + (value - with_gradient).detach()

    def metrics(self, pi: Signals, batch: Batch) -> Mapping[str, Tensor]:
        return KL(other_policy=self.other_policy).metrics(pi, batch)


@component
class CorrectedKL(Loss):
    """r k with r = pi / pi_old: estimate of KL(pi || other) from tokens that pi_old generated.

    With k3 the gradient is r (log pi - log other) grad log pi, unbiased off policy too.
    Shape (N, T). Source: DeepSeek-V3.2, arXiv:2512.02556.

    Args:
        estimator: k, a function of `grupo.algo.divergences`.
        other_policy: name of the other policy, "ref" or a teacher.
        ratio: importance ratio; per token by default.

    >>> from grupo.testing.batches import make_batch, perturb_logp
    >>> batch = make_batch(group=[0], logp=-1.0, signals={"logp@ref": [[-2.0]]})
    >>> CorrectedKL(divergences.k1)(perturb_logp(batch, [[0.0]]), batch).tolist()
    [[1.0]]
    """

    estimator: KLEstimator = divergences.k3
    other_policy: str = "ref"
    ratio: Callable[[Signals, Batch], Tensor] = ratios.token

    @property
    def requires(self) -> Requires:
        return Requires(signals=(f"logp@{self.other_policy}",))

    def __call__(self, pi: Signals, batch: Batch) -> PerAction:
        k = self.estimator(pi.logp, batch.signals[f"logp@{self.other_policy}"])
        return self.ratio(pi, batch) * k

    def metrics(self, pi: Signals, batch: Batch) -> Mapping[str, Tensor]:
        return KL(other_policy=self.other_policy).metrics(pi, batch)
