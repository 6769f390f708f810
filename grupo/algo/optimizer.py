"""From gradients to weights."""

from collections.abc import Mapping, Sequence

import torch
from torch import Tensor, nn

from grupo.core.component import piece


@piece
class Adam:
    """AdamW. Loshchilov and Hutter, 2017, arXiv:1711.05101."""

    beta1: float = 0.9
    beta2: float = 0.99
    eps: float = 1e-8
    decay: float = 0.0

    def __call__(self, parameters: Sequence[torch.nn.Parameter]) -> torch.optim.Optimizer:
        told = {"betas": (self.beta1, self.beta2), "eps": self.eps, "weight_decay": self.decay}
        return torch.optim.AdamW(parameters, **told, fused=True)


PROBED = 64  # numbers of each matrix that are looked at: copies of all would double the memory


def descend(optimizer: torch.optim.Optimizer, lr: float, max_norm: float) -> dict[str, float]:
    """One update along the gradient, its norm clipped; one that is not finite is not followed.

    How far it moved the weights, and whether down the gradient, is read from PROBED numbers of
    each matrix.
    """
    parameters = [p for group in optimizer.param_groups for p in group["params"]]
    for p in parameters:  # where nothing was learned the gradient is 0, and momentum goes on
        p.grad = torch.zeros_like(p) if p.grad is None else p.grad
    norm = nn.utils.clip_grad_norm_(parameters, max_norm)
    for group in optimizer.param_groups:
        group["lr"] = lr
    before, slope = _probe(parameters), _probe([p.grad for p in parameters if p.grad is not None])
    if norm.isfinite():
        optimizer.step()
        torch.autograd.graph.increment_version(parameters)  # torch does not count fused changes
    moved = _probe(parameters) - before
    optimizer.zero_grad()
    return {
        "gradient/norm": norm.item(),
        "gradient/nonfinite": float(not norm.isfinite()),
        "update/size": (moved.norm() / before.norm().clamp(min=1e-12)).item(),
        "update/changed": (moved != 0).double().mean().item(),
        **_descent(moved, slope),
    }


@torch.no_grad()
def _probe(parameters: Sequence[Tensor]) -> Tensor:
    """Some numbers of each matrix, evenly spread; of vectors where there is nothing else."""
    matrices = [p for p in parameters if p.ndim > 1] or parameters
    # an odd stride, or of a square matrix all would be of one column
    some = (p.flatten()[:: p.numel() // PROBED | 1][:PROBED] for p in matrices)
    return torch.cat([numbers.float() for numbers in some])


def _descent(moved: Tensor, slope: Tensor) -> dict[str, float]:
    """The cosine of how the weights moved and of the way down; nothing where either is nothing."""
    scale = (moved.norm() * slope.norm()).item()
    return {"update/descent": -(moved @ slope).item() / scale} if scale > 0 else {}


def state_of(optimizer: torch.optim.Optimizer) -> dict[str, Tensor]:
    """What an optimizer remembers, as tensors by name."""
    state: Mapping[int, Mapping[str, Tensor]] = optimizer.state_dict()["state"]
    return {f"{i}.{name}": x for i, slots in state.items() for name, x in slots.items()}


def restore(optimizer: torch.optim.Optimizer, tensors: Mapping[str, Tensor]) -> None:
    """Give an optimizer back what `state_of` returned."""
    state: dict[int, dict[str, Tensor]] = {}
    for name, tensor in tensors.items():
        place, _, slot = name.partition(".")
        state.setdefault(int(place), {})[slot] = tensor
    optimizer.load_state_dict({**optimizer.state_dict(), "state": state})
