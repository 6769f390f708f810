"""From gradients to weights."""

from collections.abc import Mapping, Sequence

import torch
from torch import Tensor, nn

from grupo.core.component import component


@component
class Adam:
    """AdamW. Loshchilov and Hutter, 2017, arXiv:1711.05101."""

    beta1: float = 0.9
    beta2: float = 0.99
    eps: float = 1e-8
    weight_decay: float = 0.0

    def __call__(self, parameters: Sequence[torch.nn.Parameter]) -> torch.optim.Optimizer:
        told = {
            "betas": (self.beta1, self.beta2),
            "eps": self.eps,
            "weight_decay": self.weight_decay,
        }
        return torch.optim.AdamW(parameters, **told, fused=True)


PROBE_SIZE = 64  # numbers of each matrix that are looked at: copies of all would double the memory


def optimizer_step(
    optimizer: torch.optim.Optimizer, learning_rate: float, max_grad_norm: float
) -> dict[str, float]:
    """One update along the gradient, its norm clipped; one that is not finite is not followed.

    How far it moved the weights, and whether down the gradient, is read from PROBED numbers of
    each matrix.
    """
    parameters = [p for group in optimizer.param_groups for p in group["params"]]
    for p in parameters:  # where nothing was learned the gradient is 0, and momentum goes on
        p.grad = torch.zeros_like(p) if p.grad is None else p.grad
    norm = nn.utils.clip_grad_norm_(parameters, max_grad_norm)
    for group in optimizer.param_groups:
        group["lr"] = learning_rate
    before, slope = (
        _sample_entries(parameters),
        _sample_entries([p.grad for p in parameters if p.grad is not None]),
    )
    if norm.isfinite():
        optimizer.step()
        torch.autograd.graph.increment_version(parameters)  # torch does not count fused changes
    moved = _sample_entries(parameters) - before
    optimizer.zero_grad()
    return {
        "grad_norm": norm.item(),
        "grad_nonfinite": float(not norm.isfinite()),
        "update/relative_norm": (moved.norm() / before.norm().clamp(min=1e-12)).item(),
        "update/changed_frac": (moved != 0).double().mean().item(),
        **_descent_cosine(moved, slope),
    }


@torch.no_grad()
def _sample_entries(parameters: Sequence[Tensor]) -> Tensor:
    """Some numbers of each matrix, evenly spread; of vectors where there is nothing else."""
    matrices = [p for p in parameters if p.ndim > 1] or parameters
    # an odd stride, or of a square matrix all would be of one column
    some = (p.flatten()[:: p.numel() // PROBE_SIZE | 1][:PROBE_SIZE] for p in matrices)
    return torch.cat([numbers.float() for numbers in some])


def _descent_cosine(moved: Tensor, slope: Tensor) -> dict[str, float]:
    """The cosine of how the weights moved and of the way down; nothing where either is nothing."""
    scale = (moved.norm() * slope.norm()).item()
    return {"update/cos_neg_grad": -(moved @ slope).item() / scale} if scale > 0 else {}


def optimizer_tensors(optimizer: torch.optim.Optimizer) -> dict[str, Tensor]:
    """What an optimizer remembers, as tensors by name."""
    state: Mapping[int, Mapping[str, Tensor]] = optimizer.state_dict()["state"]
    return {f"{i}.{name}": x for i, slots in state.items() for name, x in slots.items()}


def restore_optimizer(optimizer: torch.optim.Optimizer, tensors: Mapping[str, Tensor]) -> None:
    """Give an optimizer back what `optimizer_tensors` returned."""
    state: dict[int, dict[str, Tensor]] = {}
    for name, tensor in tensors.items():
        place, _, slot = name.partition(".")
        state.setdefault(int(place), {})[slot] = tensor
    optimizer.load_state_dict({**optimizer.state_dict(), "state": state})
