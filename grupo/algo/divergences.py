"""Estimators of KL(pi || other) from the log-probabilities of tokens sampled from pi.

Every estimator takes `logp` (under pi) and `other_logp`, tensors of one shape, and returns that
shape, in nats. Names follow Schulman, "Approximating KL divergence", 2020.
"""

from torch import Tensor


def k1(logp: Tensor, other_logp: Tensor) -> Tensor:
    """k1 = log pi - log other: unbiased, positive or negative."""
    return logp - other_logp


def abs_log_ratio(logp: Tensor, other_logp: Tensor) -> Tensor:
    """|log pi - log other|: not an estimate of KL, but non-negative with slope 1 or -1.

    >>> import torch
    >>> abs_log_ratio(torch.tensor([-1.0, -2.0]), torch.tensor([-2.0, -1.0]))
    tensor([1., 1.])
    """
    return (logp - other_logp).abs()


def k2(logp: Tensor, other_logp: Tensor) -> Tensor:
    """k2 = (log pi - log other)^2 / 2: biased; on policy its gradient is the gradient of KL."""
    return (logp - other_logp) ** 2 / 2


def k3(logp: Tensor, other_logp: Tensor) -> Tensor:
    """k3 = e^d - d - 1 with d = log other - log pi: unbiased and non-negative.

    Source: GRPO (arXiv:2402.03300), eq. 4.
    """
    d = other_logp - logp
    return d.exp() - d - 1


def k3_clamped(logp: Tensor, other_logp: Tensor) -> Tensor:
    """k3 with d clamped to [-20, 20] and the estimate to [-10, 10], as verl computes it.

    >>> import torch
    >>> k3_clamped(torch.tensor([-1.0, -9.0]), torch.tensor([-1.0, -1.0]))
    tensor([ 0., 10.])
    """
    d = (other_logp - logp).clamp(-20, 20)
    return (d.exp() - d - 1).clamp(-10, 10)
