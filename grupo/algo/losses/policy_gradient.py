"""Policy-gradient losses: PPO's clipped loss and REINFORCE.

r is the importance ratio pi / pi_old of `grupo.algo.ratios`, A the advantage, sg stop-gradient.
"""

from collections.abc import Callable, Mapping

import torch
from torch import Tensor

from grupo.algo import ratios
from grupo.algo.losses.base import Loss
from grupo.core.batch import Batch, PerAction, Signals
from grupo.core.component import component
from grupo.core.numbers import NonNegative, NumberOrSchedule
from grupo.core.requires import Requires


@component
class Clip(Loss):
    """-min(r A, clip(r, 1 - clip_low, 1 + clip_high) A): PPO's clipped loss, (N, T).

    Source: Schulman et al., arXiv:1707.06347, eq. 7; separate bounds as in DAPO, arXiv:2503.14476.

    Args:
        clip_low: width of the clip below 1.
        clip_high: width of the clip above 1.
        ratio: importance ratio; per token by default, `ratios.sequence` for GSPO.

    >>> from grupo.testing.batches import make_batch, perturb_logp
    >>> batch = make_batch(group=[0, 0], advantage=[1.0, -1.0])
    >>> pi = perturb_logp(batch, [[0.5], [0.5]])  # r = e^0.5 = 1.6487
    >>> Clip(clip_low=0.2, clip_high=0.2)(pi, batch).tolist()
    [[-1.2], [1.6487212707001282]]
    """

    clip_low: NonNegative = 0.2
    clip_high: NonNegative = 0.2
    ratio: Callable[[Signals, Batch], Tensor] = ratios.token

    @property
    def zero_if_no_advantage(self) -> bool:
        return True

    def __call__(self, pi: Signals, batch: Batch) -> PerAction:
        r = self.ratio(pi, batch)
        A = batch.advantage
        return -torch.min(r * A, r.clamp(1 - self.clip_low, 1 + self.clip_high) * A)

    def metrics(self, pi: Signals, batch: Batch) -> Mapping[str, Tensor]:
        r = self.ratio(pi, batch)
        A = batch.advantage
        return {
            "clip_frac/low": ((r < 1 - self.clip_low) & (A < 0)).to(A),
            "clip_frac/high": ((r > 1 + self.clip_high) & (A > 0)).to(A),
        }


@component
class ClipWithin(Loss):
    """-min(r A, clip(r, low, high) A) with bounds for each action or row, (N, T).

    Args:
        bounds: function `batch -> (low, high)`, each (N, T) or (N, 1). It reads only what was
            measured before the update (`batch.signals`), and no gradient flows through it.
        ratio: importance ratio; per token by default.

    >>> from grupo.testing.batches import make_batch, perturb_logp
    >>> def by_length(batch):
    ...     length = batch.mask.sum(1, keepdim=True)
    ...     return -length, 0.5 * length
    >>> batch = make_batch(group=[0, 0], length=[2, 4], advantage=[1.0, 1.0])
    >>> pi = perturb_logp(batch, [[1.0] * 4] * 2)
    >>> ClipWithin(by_length, ratios.sequence)(pi, batch)[:, 0].tolist()
    [-1.0, -2.0]
    """

    bounds: Callable[[Batch], tuple[Tensor, Tensor]]
    ratio: Callable[[Signals, Batch], Tensor] = ratios.token

    @property
    def zero_if_no_advantage(self) -> bool:
        return True

    def __call__(self, pi: Signals, batch: Batch) -> PerAction:
        r = self.ratio(pi, batch)
        A = batch.advantage
        (low, high) = self.bounds(batch)
        return -torch.min(r * A, r.clamp(low.to(r), high.to(r)) * A)

    def metrics(self, pi: Signals, batch: Batch) -> Mapping[str, Tensor]:
        r = self.ratio(pi, batch)
        A = batch.advantage
        (low, high) = self.bounds(batch)
        return {
            "clip_frac/low": ((r < low) & (A < 0)).to(A),
            "clip_frac/high": ((r > high) & (A > 0)).to(A),
        }


@component
class Reinforce(Loss):
    """-A log pi, (N, T): no ratio and no clip, exact on policy. Source: Williams, 1992.

    >>> from grupo.testing.batches import make_batch, perturb_logp
    >>> batch = make_batch(group=[0], advantage=[2.0], logp=-1.0)
    >>> Reinforce()(perturb_logp(batch, [[0.5]]), batch).tolist()
    [[1.0]]
    """

    @property
    def zero_if_no_advantage(self) -> bool:
        return True

    def __call__(self, pi: Signals, batch: Batch) -> PerAction:
        return -batch.advantage * pi.logp


@component
class WeightedReinforce(Loss):
    """-sg(w) A log pi, (N, T): REINFORCE with a constant weight for each action.

    With w = r the gradient is that of r A, so a method that clips, masks or damps r is a weight.

    Args:
        weight: function `(pi, batch) -> w`, (N, T) or (N, 1).

    >>> from grupo.testing.batches import make_batch, perturb_logp
    >>> batch = make_batch(group=[0, 0], advantage=[1.0, -1.0])
    >>> pi = perturb_logp(batch, [[1.0], [0.0]])  # log pi = 0, -1
    >>> WeightedReinforce(ratios.CappedRatio(2.0))(pi, batch).tolist()
    [[-0.0], [-1.0]]
    """

    weight: Callable[[Signals, Batch], Tensor]

    requires = Requires(surrogate_gradient=True)

    @property
    def zero_if_no_advantage(self) -> bool:
        return True

    def __call__(self, pi: Signals, batch: Batch) -> PerAction:
        return -self.weight(pi, batch).detach() * batch.advantage * pi.logp

    def metrics(self, pi: Signals, batch: Batch) -> Mapping[str, Tensor]:
        return {"is_weight/mean": self.weight(pi, batch).expand_as(batch.advantage)}


@component
class ClipPreserveGradient:
    """Weight for `WeightedReinforce`: r inside PPO's clip, a multiple of the bound outside, (N, T).

    w = high_scale (1 + clip_high) where A > 0 and r > 1 + clip_high,
    w = low_scale (1 - clip_low) where A < 0 and r < 1 - clip_low, else w = r.
    Clipped tokens therefore keep a gradient.
    Sources: GPPO (arXiv:2508.07629) and CE-GPPO (arXiv:2509.20712).

    Args:
        clip_low: width of the clip below 1.
        clip_high: width of the clip above 1.
        low_scale: factor on the gradient of tokens clipped from below.
        high_scale: factor on the gradient of tokens clipped from above.

    >>> from grupo.testing.batches import make_batch, perturb_logp
    >>> batch = make_batch(group=[0, 0], advantage=[1.0, -1.0])
    >>> pi = perturb_logp(batch, [[0.5], [-0.5]])
    >>> ClipPreserveGradient(0.2, 0.2, 0.5, 1.0)(pi, batch).tolist()
    [[1.2], [0.4]]
    """

    clip_low: NonNegative = 0.2
    clip_high: NonNegative = 0.2
    low_scale: NumberOrSchedule = 1.0
    high_scale: NumberOrSchedule = 1.0

    def __call__(self, pi: Signals, batch: Batch) -> PerAction:
        r = ratios.token(pi, batch)
        A = batch.advantage
        low = 1 - self.clip_low
        high = 1 + self.clip_high
        w = torch.where((A > 0) & (r > high), self.high_scale * high, r)
        return torch.where((A < 0) & (r < low), self.low_scale * low, w)
