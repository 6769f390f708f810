"""Exact expected gradients of methods on environments so small that all groups are listed."""

from grupo.evidence.exact.environment import FiniteEnv, FiniteTask
from grupo.evidence.exact.gradient import GradientMoments, expected_gradient

__all__ = ["FiniteEnv", "FiniteTask", "GradientMoments", "expected_gradient"]
