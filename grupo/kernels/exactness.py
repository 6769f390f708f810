"""Comparison of an implementation's hidden states with those of the model itself in float32."""

from collections.abc import Callable
from dataclasses import dataclass

import torch
from jaxtyping import Float
from torch import Tensor

from grupo.kernels.float32_precision import HALF_PRECISION, Float32Activations, full_float32

FLOAT32_ERROR = 1e-3  # of an implementation in float32
# times the error of the model's own implementation that another one may have in half precision:
# 0.4 to 1.3 in families whose attention is packed correctly, the extremes with experts, which
# rounding chooses; 19 and more in those that have attention of another kind
ROUNDING_RATIO = 3.0


@dataclass(frozen=True)
class ExpectedStates:
    """Hidden states in float32, and how far those of an implementation may be from them.

    An absolute limit for half precision would fit some models and some tokens only: rounding of
    one size changes hidden states by 0.4 % in some models, and by 30 % in others.

    Args:
        values: the hidden states of the model itself, in float32 or float64.
        allowed: relative error that another implementation may have.
    """

    values: Float[Tensor, "*n h"]
    allowed: float

    @classmethod
    @torch.no_grad()
    @full_float32()
    def of(cls, compute: Callable[[], Tensor]) -> "ExpectedStates":
        """The expected states of a model, whose own implementation is `compute`."""
        own = compute()
        if own.dtype not in HALF_PRECISION:
            return cls(own, FLOAT32_ERROR)
        with Float32Activations():
            exact = compute()
        return cls(exact, max(FLOAT32_ERROR, ROUNDING_RATIO * relative_error(own, exact)))

    def deviation(self, hidden: Float[Tensor, "*n h"]) -> str:
        """By how much hidden states differ; "" if they are as exact as allowed."""
        error = relative_error(hidden, self.values)
        is_exact = error <= self.allowed  # False for NaN
        return "" if is_exact else f"differs by {error:.2g} (allowed {self.allowed:.2g})"


def relative_error(hidden: Float[Tensor, "*n h"], exact: Float[Tensor, "*n h"]) -> float:
    """The mean over tokens of the distance of two hidden states, divided by the second's norm.

    >>> hidden = torch.tensor([[3.0, 4.5], [1.0, 0.0]])
    >>> round(relative_error(hidden, torch.tensor([[3.0, 4.0], [1.0, 0.0]])), 4)
    0.05
    """
    distance = (hidden.to(exact.dtype) - exact).norm(dim=-1)
    return float((distance / exact.norm(dim=-1)).mean())
