"""Tensors in memory that processes of one machine share: their handles, and tensors of handles."""

import json
import platform
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch
from torch.multiprocessing.reductions import (
    rebuild_cuda_tensor,
    rebuild_tensor,
    reduce_tensor,
)

from .digest import WeightDigest, Weights


def place_of(device: torch.device) -> str:
    """The machine, since it was started, and the GPU of a device: processes there share memory."""
    boot = Path("/proc/sys/kernel/random/boot_id")
    machine = boot.read_text().strip() if boot.exists() else platform.node()
    is_gpu = device.type == "cuda"
    unit = str(torch.cuda.get_device_properties(device).uuid) if is_gpu else "cpu"
    return f"{unit} of {machine}"


def shared_handles(tensors: Mapping[str, torch.Tensor]) -> str:
    """Handles of contiguous tensors, as JSON, for another process at the same place.

    CUDA's are those of CUDA IPC, as torch.multiprocessing makes them; on a CPU the tensors move to
    shared memory. The tensors must live until the other process has taken them.
    """
    return json.dumps([_handle(name, tensors[name]) for name in sorted(tensors)])


def shared_tensors(handles: str, device: torch.device, digest: WeightDigest) -> Weights:
    """Yields the tensors of `shared_handles` without a copy and adds each to the digest."""
    for handle in json.loads(handles):
        tensor = _from_handle(handle, device)
        digest.add(handle["name"], tensor)
        yield handle["name"], tensor


def _handle(name: str, tensor: torch.Tensor) -> dict[str, Any]:
    kind = str(tensor.dtype).removeprefix("torch.")
    handle = {"name": name, "dtype": kind, "size": list(tensor.shape), "memory": []}
    if not tensor.numel():
        return handle
    args: Any = reduce_tensor(tensor)[1]
    if tensor.device.type == "cuda":
        (*_, memory, bytes_, start, _, counter, counter_start, event, is_synced) = args
        parts = [memory, bytes_, start, counter, counter_start, event, is_synced]
    else:
        parts = list(args[1]._untyped_storage._share_filename_cpu_())
    return {
        **handle,
        "stride": list(tensor.stride()),
        "offset": tensor.storage_offset(),
        "memory": [part.hex() if isinstance(part, bytes) else part for part in parts],
    }


def _from_handle(handle: Mapping[str, Any], device: torch.device) -> torch.Tensor:
    dtype, size = getattr(torch, handle["dtype"]), torch.Size(handle["size"])
    if not handle["memory"]:
        return torch.empty(size, dtype=dtype, device=device)
    parts = [bytes.fromhex(p) if isinstance(p, str) else p for p in handle["memory"]]
    stride, offset = tuple(handle["stride"]), handle["offset"]
    if device.type == "cuda":
        memory, bytes_, start, *rest = parts
        storage = torch.storage.TypedStorage
        view = (torch.Tensor, size, stride, offset, storage, dtype, device.index or 0)
        return rebuild_cuda_tensor(*view, memory, bytes_, start, False, *rest)
    untyped = torch.UntypedStorage._new_shared_filename_cpu(*parts)
    typed = torch.storage.TypedStorage(wrap_storage=untyped, dtype=dtype, _internal=True)
    return rebuild_tensor(torch.Tensor, typed, (offset, size, stride, False))
