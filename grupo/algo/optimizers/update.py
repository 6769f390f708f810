"""One update of the weights, with gradient clipping, and its metrics."""

from collections.abc import Sequence

import torch
from torch import Tensor, nn

from grupo.algo.optimizers.averaging import optimizer_parameters
from grupo.util.sharded_tensors import flat_entries, whole

PROBE_SIZE = 64  # entries read of each matrix: a copy of all weights would double the memory


def optimizer_step(
    optimizer: torch.optim.Optimizer, learning_rate: float, max_grad_norm: float
) -> dict[str, float]:
    """Apply one update with the gradient norm clipped; skip it if the norm is not finite.

    `update/*` metrics are estimated from `PROBE_SIZE` entries of each matrix.

    Args:
        optimizer: optimizer whose parameters hold gradients; they are cleared afterwards.
        learning_rate: learning rate of this update, for all parameter groups.
        max_grad_norm: largest L2 norm of the whole gradient.

    Returns:
        Metrics: `grad_norm` before clipping, `grad_nonfinite` (0 or 1), `update/relative_norm`
        (norm of the change / norm of the weights), `update/changed_frac`, and
        `update/cos_neg_grad` (absent if the update or the gradient is 0).
    """
    parameters = optimizer_parameters(optimizer)
    for p in parameters:  # an unused parameter has gradient 0; its momentum still applies
        p.grad = torch.zeros_like(p) if p.grad is None else p.grad
    norm = whole(nn.utils.clip_grad_norm_(parameters, max_grad_norm))
    for group in optimizer.param_groups:
        group["lr"] = learning_rate
    before = _sample_entries(parameters)
    gradient = _sample_entries([p.grad for p in parameters if p.grad is not None])
    if norm.isfinite():
        optimizer.step()
    change = _sample_entries(parameters) - before
    optimizer.zero_grad()
    return {
        "grad_norm": norm.item(),
        "grad_nonfinite": float(not norm.isfinite()),
        "update/relative_norm": (change.norm() / before.norm().clamp(min=1e-12)).item(),
        "update/changed_frac": (change != 0).double().mean().item(),
        **_descent_cosine(change, gradient),
    }


@torch.no_grad()
def _sample_entries(parameters: Sequence[Tensor]) -> Tensor:
    """Evenly spaced entries of each matrix; of the vectors if there is no matrix.

    Policies of several roles may live on several devices: the entries are on that of the first.
    """
    matrices = [p for p in parameters if p.ndim > 1] or parameters
    # an odd stride: an even one would read a single column of a square matrix
    samples = (flat_entries(p, p.numel() // PROBE_SIZE | 1, PROBE_SIZE) for p in matrices)
    return torch.cat([entries.float().to(matrices[0].device) for entries in samples])


def _descent_cosine(change: Tensor, gradient: Tensor) -> dict[str, float]:
    """Cosine between the change of the weights and minus the gradient; empty if either is 0."""
    scale = (change.norm() * gradient.norm()).item()
    return {"update/cos_neg_grad": -(change @ gradient).item() / scale} if scale > 0 else {}
