"""Losses that depend on the policy's entropy at each token."""

import torch
from torch import Tensor

from grupo.algo import ratios
from grupo.algo.losses.base import Loss
from grupo.algo.losses.regularizers import KL
from grupo.algo.token_level import row_max
from grupo.core.batch import Batch, PerAction, Signals
from grupo.core.component import component
from grupo.core.numbers import Fraction, NonNegative, NumberOrSchedule
from grupo.core.requires import Requires


def scaled_log_entropy(entropy: PerAction, batch: Batch, quantile: float = 0.8) -> PerAction:
    """Log entropy minus its batch quantile, each side scaled so that its extreme is 1 or -1.

    No gradient; 0 where masked. Source: HAPO, Liu et al., arXiv:2509.16591.

    Args:
        entropy: entropy of each token, in nats, (N, T).
        batch: provides the mask.
        quantile: level of the batch quantile that becomes 0, in [0, 1].

    >>> from math import exp
    >>> from grupo.testing.batches import make_batch
    >>> entropy = torch.tensor([[exp(-4.0), exp(-2.0), exp(0.0), exp(1.0)]])
    >>> scaled_log_entropy(entropy, make_batch([0], length=[4]), quantile=0.67)
    tensor([[-1.0000, -0.5000,  0.0000,  1.0000]])
    """
    log_entropy = entropy.detach().clamp(min=1e-8).log()
    ranked = log_entropy[batch.mask].sort().values
    # nearest-rank quantile; the sum of an empty slice is 0
    middle = ranked[round(quantile * (len(ranked) - 1)) :][:1].sum()
    h = (log_entropy - middle).masked_fill(~batch.mask, 0.0)
    if not h.numel():
        return h
    return h / torch.where(h > 0, h.max(), -h.min()).clamp(min=1e-8)


@component
class EntropyAdaptiveClip(Loss):
    """Dual-clip PPO loss whose bounds and advantage depend on h = `scaled_log_entropy`, (N, T).

    The bounds are 1 - clip_eps (1 + max(-h, 0)) and 1 + clip_eps (1 + max(h, 0)). The advantage is
    multiplied by 1 + h for tokens with h <= 0 and a ratio within half the bounds, and for tokens
    with h > 0 and a ratio beyond that. For A < 0 the loss is at most -dual_clip A.
    Source: HAPO, Liu et al., arXiv:2509.16591.

    Args:
        clip_eps: width of the clip at h = 0.
        dual_clip: largest ratio that counts where A < 0.

    >>> from grupo.testing.batches import make_batch, perturb_logp
    >>> batch = make_batch([0, 0], advantage=[1.0, 1.0])
    >>> pi = perturb_logp(batch, [[0.0], [0.25]])
    >>> pi["entropy"] = torch.tensor([[1.0], [2.0]], dtype=torch.float64)
    >>> EntropyAdaptiveClip()(pi, batch).tolist()  # h = -1 and 0
    [[-0.0], [-1.2]]
    """

    clip_eps: NonNegative = 0.2
    dual_clip: NonNegative = 10.0

    # the entropy quantile is that of all groups
    requires = Requires(
        recomputed_signals=("entropy",),
        coupled_rows=True,
        surrogate_gradient=True,
        whole_batch=True,
    )

    def __call__(self, pi: Signals, batch: Batch) -> PerAction:
        h = scaled_log_entropy(pi.entropy, batch)
        r = ratios.token(pi, batch)
        low = self.clip_eps * (1 + (-h).clamp(min=0))
        high = self.clip_eps * (1 + h.clamp(min=0))
        is_near_1 = (r > 1 - low / 2) & (r < 1 + high / 2)
        A = batch.advantage * self._advantage_scale(h, is_near_1)
        loss = -torch.min(r * A, r.clamp(1 - low, 1 + high) * A)
        return torch.where(A < 0, torch.min(loss, -self.dual_clip * A), loss)

    def _advantage_scale(self, h: Tensor, is_near_1: Tensor) -> Tensor:
        return torch.where(is_near_1 == (h <= 0), 1 + h, torch.ones_like(h))


def minmax_entropy(entropy: PerAction, batch: Batch) -> PerAction:
    """(H - min H) / (max H - min H + 1e-8) over the tokens of each row, (N, T).

    No gradient; 0 where masked.

    >>> from grupo.testing.batches import make_batch
    >>> minmax_entropy(torch.tensor([[1.0, 3.0, 2.0]]), make_batch([0], length=[3]))
    tensor([[0.0000, 1.0000, 0.5000]])
    """
    H = entropy.detach()
    low = -row_max(-H, batch)
    high = row_max(H, batch)
    return torch.where(batch.mask, (H - low) / (high - low + 1e-8), 0.0)


def high_entropy_mask(entropy: PerAction, batch: Batch, quantile: float = 0.8) -> Tensor:
    """True for tokens whose entropy is at least the quantile of their own row, (N, T).

    No gradient. Source: Archer, Wang et al., arXiv:2507.15778.

    Args:
        entropy: entropy of each token, in nats, (N, T).
        batch: provides the mask.
        quantile: level of the row's quantile, in [0, 1].

    >>> from grupo.testing.batches import make_batch
    >>> high_entropy_mask(torch.tensor([[0.1, 2.0, 0.3]]), make_batch([0], length=[3]))
    tensor([[False,  True, False]])
    """
    H = entropy.detach().masked_fill(~batch.mask, torch.nan)
    if not H.numel():  # which nanquantile refuses
        return batch.mask
    return H.nanquantile(quantile, dim=1, keepdim=True) <= H


@component
class DualConstraint(Loss):
    """PPO's clipped loss plus a k3 penalty, with other bounds and coefficients at high entropy.

    Tokens in `high_entropy_mask` use `high_entropy_clip_eps` and `high_entropy_kl_coef`, the
    others `clip_eps` and `kl_coef`. Shape (N, T).
    Source: Archer, Wang et al., arXiv:2507.15778.

    Args:
        clip_eps: width of the clip on either side of 1.
        high_entropy_clip_eps: the same for high-entropy tokens.
        kl_coef: coefficient of k3 against the reference policy.
        high_entropy_kl_coef: the same for high-entropy tokens.
        quantile: level of the row's entropy quantile from which a token has high entropy.

    >>> from grupo.testing.batches import make_batch, perturb_logp
    >>> batch = make_batch([0], length=[2], advantage=[1.0])
    >>> pi = perturb_logp(batch, [[1.0, 1.0]])
    >>> pi["entropy"] = torch.tensor([[0.1, 2.0]], dtype=torch.float64)
    >>> DualConstraint(clip_eps=0.25, high_entropy_clip_eps=0.5)(pi, batch).tolist()
    [[-1.25, -1.5]]
    """

    clip_eps: NonNegative = 0.2
    high_entropy_clip_eps: NonNegative = 0.5
    kl_coef: NumberOrSchedule = 0.0
    high_entropy_kl_coef: NumberOrSchedule = 0.0
    quantile: Fraction = 0.8

    @property
    def has_kl_penalty(self) -> bool:
        """True if either KL coefficient is nonzero."""
        return bool(self.kl_coef or self.high_entropy_kl_coef)

    @property
    def requires(self) -> Requires:
        signals = ("logp@ref",) if self.has_kl_penalty else ()
        return Requires(signals=signals, recomputed_signals=("entropy",), surrogate_gradient=True)

    def __call__(self, pi: Signals, batch: Batch) -> PerAction:
        is_high = high_entropy_mask(pi.entropy, batch, self.quantile)
        r = ratios.token(pi, batch)
        A = batch.advantage
        clip_eps = torch.full_like(r, self.clip_eps).masked_fill(
            is_high, self.high_entropy_clip_eps
        )
        kl_coef = torch.full_like(r, self.kl_coef).masked_fill(is_high, self.high_entropy_kl_coef)
        loss = -torch.min(r * A, r.clamp(1 - clip_eps, 1 + clip_eps) * A)
        return loss + kl_coef * KL()(pi, batch) if self.has_kl_penalty else loss


def logp_advantage_covariance(pi: Signals, batch: Batch) -> PerAction:
    """(log pi - mean log pi) (A - mean A), means over the minibatch's tokens, (N, T).

    No gradient. Tokens with a large covariance reduce entropy the most: likely tokens that become
    likelier. Source: Cui et al., arXiv:2505.22617.

    >>> from grupo.testing.batches import make_batch, perturb_logp
    >>> batch = make_batch([0, 0], advantage=[1.0, -1.0])
    >>> pi = perturb_logp(batch, [[1.0], [0.0]])  # log pi = 0 and -1
    >>> logp_advantage_covariance(pi, batch).tolist()
    [[0.5], [0.5]]
    """
    n = batch.mask.sum().clamp(min=1)
    logp = pi.logp.detach().masked_fill(~batch.mask, 0.0)
    A = batch.advantage.masked_fill(~batch.mask, 0.0)
    return (logp - logp.sum() / n) * (A - A.sum() / n)
