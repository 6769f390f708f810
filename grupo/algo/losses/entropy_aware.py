"""Losses that treat an action by how uncertain the policy was when it took it."""

import torch
from torch import Tensor

from grupo.algo import ratios
from grupo.algo.losses.base import Loss
from grupo.algo.losses.regularizers import KL
from grupo.core.batch import Batch, PerAction, Signals
from grupo.core.component import component


def scaled_log_entropy(entropy: PerAction, batch: Batch, quantile: float = 0.8) -> PerAction:
    """Where log entropy lies about its quantile over the batch, each side scaled to reach 1 or -1.

    HAPO, Liu et al., arXiv:2509.16591. No gradient; 0 where masked.

    >>> from math import exp
    >>> from grupo.testing.batch_sizes import batch_of
    >>> entropy = torch.tensor([[exp(-4.0), exp(-2.0), exp(0.0), exp(1.0)]])
    >>> scaled_log_entropy(entropy, make_batch([0], length=[4]), quantile=0.67)
    tensor([[-1.0000, -0.5000,  0.0000,  1.0000]])
    """
    e = entropy.detach().clamp(min=1e-8).log()
    acted = e[batch.mask].sort().values
    middle = acted[round(quantile * (len(acted) - 1)) :][:1].sum()  # the nearest; 0 of none
    h = (e - middle).masked_fill(~batch.mask, 0.0)
    return h / torch.where(h > 0, h.max(), -h.min()).clamp(min=1e-8)


@component
class EntropyAdaptiveClip(Loss):
    """Dual-clipped surrogate whose bounds and advantage follow the entropy h in [-1, 1].

    High entropy widens the upper bound by 1 + h, low entropy the lower by 1 + |h|. About R = 1, up
    to half way to the bounds, A is damped by 1 + h at low entropy; beyond, it is raised by 1 + h at
    high entropy. HAPO, Liu et al., arXiv:2509.16591.

    >>> from grupo.testing.batch_sizes import batch_of, moved
    >>> batch = make_batch([0, 0], advantage=[1.0, 1.0])
    >>> pi = moved(batch, [[0.0], [0.25]])
    >>> pi["entropy"] = torch.tensor([[1.0], [2.0]], dtype=torch.float64)
    >>> EntropyAdaptiveClip()(pi, batch).tolist()  # h = -1 and 0
    [[-0.0], [-1.2]]
    """

    clip_eps: float = 0.2
    dual_clip: float = 10.0

    @property
    def required_signals(self) -> frozenset[str]:
        return frozenset({"entropy"})

    @property
    def couples_rows(self) -> bool:
        return True

    @property
    def has_stop_gradient(self) -> bool:
        return True

    @property
    def needs_whole_batch(self) -> bool:
        """Yes: entropy is measured against that of all groups."""
        return True

    def __call__(self, pi: Signals, batch: Batch) -> PerAction:
        h, r = scaled_log_entropy(pi.entropy, batch), ratios.token(pi, batch)
        low, high = self.clip_eps * (1 + (-h).clamp(min=0)), self.clip_eps * (1 + h.clamp(min=0))
        A = batch.advantage * self._advantage_scale(h, (r > 1 - low / 2) & (r < 1 + high / 2))
        loss = -torch.min(r * A, r.clamp(1 - low, 1 + high) * A)
        return torch.where(A < 0, torch.min(loss, -self.dual_clip * A), loss)

    def _advantage_scale(self, h: Tensor, near: Tensor) -> Tensor:
        return torch.where(near == (h <= 0), 1 + h, torch.ones_like(h))


def minmax_entropy(entropy: PerAction, batch: Batch) -> PerAction:
    """(H - min H) / (max H - min H) over the row's actions. No gradient; 0 where masked.

    >>> from grupo.testing.batch_sizes import batch_of
    >>> minmax_entropy(torch.tensor([[1.0, 3.0, 2.0]]), make_batch([0], length=[3]))
    tensor([[0.0000, 1.0000, 0.5000]])
    """
    H = entropy.detach()
    low = H.masked_fill(~batch.mask, torch.inf).amin(1, keepdim=True)
    high = H.masked_fill(~batch.mask, -torch.inf).amax(1, keepdim=True)
    return torch.where(batch.mask, (H - low) / (high - low + 1e-8), 0.0)


def high_entropy_mask(entropy: PerAction, batch: Batch, quantile: float = 0.8) -> Tensor:
    """Where entropy is at or above the `quantile` of the action's own row: forks of reasoning.

    Archer, Wang et al., arXiv:2507.15778. No gradient.

    >>> from grupo.testing.batch_sizes import batch_of
    >>> high_entropy_mask(torch.tensor([[0.1, 2.0, 0.3]]), make_batch([0], length=[3]))
    tensor([[False,  True, False]])
    """
    H = entropy.detach().masked_fill(~batch.mask, torch.nan)
    return H.nanquantile(quantile, dim=1, keepdim=True) <= H


@component
class DualConstraint(Loss):
    """PPO's surrogate and k3 to the reference, with other bounds and factors at forks.

    >>> from grupo.testing.batch_sizes import batch_of, moved
    >>> batch = make_batch([0], length=[2], advantage=[1.0])
    >>> pi = moved(batch, [[1.0, 1.0]])
    >>> pi["entropy"] = torch.tensor([[0.1, 2.0]], dtype=torch.float64)
    >>> DualConstraint(clip_eps=0.25, high_entropy_clip_eps=0.5)(pi, batch).tolist()
    [[-1.25, -1.5]]
    """

    clip_eps: float = 0.2
    high_entropy_clip_eps: float = 0.5
    kl_coef: float = 0.0
    high_entropy_kl_coef: float = 0.0
    quantile: float = 0.8

    @property
    def has_kl_penalty(self) -> bool:
        """Does the KL count anywhere?"""
        return bool(self.kl_coef or self.high_entropy_kl_coef)

    @property
    def required_signals(self) -> frozenset[str]:
        return frozenset({"entropy", *(KL().required_signals if self.has_kl_penalty else ())})

    @property
    def has_stop_gradient(self) -> bool:
        return True

    def __call__(self, pi: Signals, batch: Batch) -> PerAction:
        fork = high_entropy_mask(pi.entropy, batch, self.quantile)
        r, A = ratios.token(pi, batch), batch.advantage
        width = torch.where(fork, self.high_entropy_clip_eps, self.clip_eps).to(r)
        factor = torch.where(fork, self.high_entropy_kl_coef, self.kl_coef).to(r)
        surrogate = -torch.min(r * A, r.clamp(1 - width, 1 + width) * A)
        return surrogate + factor * KL()(pi, batch) if self.has_kl_penalty else surrogate


def logp_advantage_covariance(pi: Signals, batch: Batch) -> PerAction:
    """(log pi - mean log pi) (A - mean A), means over the minibatch's actions; no gradient.

    What costs entropy: likely actions made likelier. Cui et al., arXiv:2505.22617.

    >>> from grupo.testing.batch_sizes import batch_of, moved
    >>> batch = make_batch([0, 0], advantage=[1.0, -1.0])
    >>> logp_advantage_covariance(moved(batch, [[1.0], [0.0]]), batch).tolist()  # log pi 0 and -1
    [[0.5], [0.5]]
    """
    n = batch.mask.sum().clamp(min=1)
    logp = pi.logp.detach().masked_fill(~batch.mask, 0.0)
    A = batch.advantage.masked_fill(~batch.mask, 0.0)
    return (logp - logp.sum() / n) * (A - A.sum() / n)
