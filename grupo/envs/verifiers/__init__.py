"""Environments of the library verifiers."""

from grupo.envs.verifiers.env import Verifiers, VerifiersTasks

__all__ = ["Verifiers", "VerifiersTasks"]
