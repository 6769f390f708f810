"""Estimates of KL(pi, other) from the log-probabilities of actions drawn from pi (Schulman,
"Approximating KL").

Each takes `logp` under pi and `other`, of one shape, and returns that shape, in nats.
"""

from torch import Tensor


def k1(logp: Tensor, other: Tensor) -> Tensor:
    """log pi - log other: unbiased, of either sign."""
    return logp - other


def k2(logp: Tensor, other: Tensor) -> Tensor:
    """(log pi - log other)^2 / 2: biased, its gradient is the gradient of KL on policy."""
    return (logp - other) ** 2 / 2


def k3(logp: Tensor, other: Tensor) -> Tensor:
    """e^d - d - 1 with d = log other - log pi: unbiased and never negative.

    GRPO (arXiv:2402.03300), eq. 4.
    """
    d = other - logp
    return d.exp() - d - 1
