"""Tensors whose rows are divided among processes, `DTensor` of torch, beside ordinary ones."""

import sys
from typing import TYPE_CHECKING, TypeGuard

import torch
from torch import Tensor

if TYPE_CHECKING:
    from torch.distributed.tensor import DTensor


def is_sharded(tensor: Tensor) -> "TypeGuard[DTensor]":
    """Whether the rows of the tensor are divided among processes."""
    # without the import of its module, which takes time, a program has no such tensor
    module = sys.modules.get("torch.distributed.tensor")
    return module is not None and isinstance(tensor, module.DTensor)


def whole(tensor: Tensor) -> Tensor:
    """The tensor with all of its rows: every process of a sharded one calls this.

    >>> whole(torch.tensor([1, 2]))
    tensor([1, 2])
    """
    return tensor.full_tensor() if is_sharded(tensor) else tensor


def sharded_like(template: Tensor, tensor: Tensor) -> Tensor:
    """A whole tensor, of which this process keeps the rows that it has of `template`.

    >>> sharded_like(torch.zeros(2), torch.tensor([1, 2]))
    tensor([1, 2])
    """
    if not is_sharded(template) or is_sharded(tensor) or tensor.shape != template.shape:
        return tensor
    from torch.distributed.tensor import distribute_tensor

    on_device = tensor.to(template.device)
    # without a source every process divides its own tensor, and nothing is sent
    return distribute_tensor(
        on_device, template.device_mesh, template.placements, src_data_rank=None
    )


def flat_entries(tensor: Tensor, stride: int, count: int) -> Tensor:
    """Up to `count` entries of the flattened tensor, `stride` apart, on every process.

    >>> flat_entries(torch.arange(6).view(2, 3), 2, 2)
    tensor([0, 2])
    """
    if not is_sharded(tensor):
        return tensor.flatten()[::stride][:count]
    from torch.distributed.tensor import DTensor, Partial

    assert isinstance(tensor, DTensor)
    local, mesh = tensor.to_local().flatten(), tensor.device_mesh
    index = torch.arange(tensor.numel(), device=local.device)[::stride][:count]
    rows_per_process = -(-tensor.shape[0] // mesh.size())
    first = mesh.get_local_rank() * rows_per_process * (tensor.numel() // tensor.shape[0])
    is_own = (index >= first) & (index < first + len(local))
    entries = torch.zeros(len(index), dtype=local.dtype, device=local.device)
    entries[is_own] = local[index[is_own] - first]
    return DTensor.from_local(entries, mesh, [Partial()]).full_tensor()
