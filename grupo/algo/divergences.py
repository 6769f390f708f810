"""Estimates of KL(pi, other) from the log-probabilities of actions drawn from pi (Schulman,
"Approximating KL").

Each takes `logp` under pi and `other`, of one shape, and returns that shape, in nats.
"""

from torch import Tensor


def k1(logp: Tensor, other_logp: Tensor) -> Tensor:
    """log pi - log other: unbiased, of either sign."""
    return logp - other_logp


def abs_log_ratio(logp: Tensor, other_logp: Tensor) -> Tensor:
    """|log pi - log other|: no estimate of KL, but never negative and of even slope.

    >>> import torch
    >>> abs_log_ratio(torch.tensor([-1.0, -2.0]), torch.tensor([-2.0, -1.0]))
    tensor([1., 1.])
    """
    return (logp - other_logp).abs()


def k2(logp: Tensor, other_logp: Tensor) -> Tensor:
    """(log pi - log other)^2 / 2: biased, its gradient is the gradient of KL on policy."""
    return (logp - other_logp) ** 2 / 2


def k3(logp: Tensor, other_logp: Tensor) -> Tensor:
    """e^d - d - 1 with d = log other - log pi: unbiased and never negative.

    GRPO (arXiv:2402.03300), eq. 4.
    """
    d = other_logp - logp
    return d.exp() - d - 1


def k3_clamped(logp: Tensor, other_logp: Tensor) -> Tensor:
    """k3 with d held within 20 and the estimate within 10: finite, as implementations often do.

    >>> import torch
    >>> k3_clamped(torch.tensor([-1.0, -9.0]), torch.tensor([-1.0, -1.0]))
    tensor([ 0., 10.])
    """
    d = (other_logp - logp).clamp(-20, 20)
    return (d.exp() - d - 1).clamp(-10, 10)
