"""Return-conditioned cloning: the actions that were followed by a return."""

import torch
from jaxtyping import Float
from torch import Tensor

from grupo.evidence.claims.offline.outcomes import OutcomeLog


def return_conditioned_policy(log: OutcomeLog, target: float) -> Float[Tensor, "S A"]:
    """pi(a | s, return = target): the optimum of supervised learning conditioned on the return.

    A state in which the return never followed has the uniform distribution.

    Args:
        log: The log.
        target: The return that is asked for.
    """
    joint = log.frequencies()[:, :, log.values == target].sum(-1)
    total = joint.sum(-1, keepdim=True)
    uniform = torch.full_like(joint, 1 / log.num_actions)
    return torch.where(total > 0, joint / total.clamp(min=1e-300), uniform)
