"""Tensors that arrive in a file or over a process group."""

import json
from collections.abc import Iterator
from datetime import timedelta
from typing import Any

import torch
from safetensors import safe_open
from torch.distributed import PrefixStore, ProcessGroupGloo, Store, TCPStore

from .digest import WeightDigest, Weights

TRANSFER_TIMEOUT = timedelta(seconds=60)  # of one part of a tensor
PART_BYTES = 1 << 28  # of a tensor, sent at once


class InterruptedTransfer(Exception):
    """The sender ended, or has other weights by now."""


def read_tensors(path: str, digest: WeightDigest) -> Weights:
    """Yields the tensors of a file in alphabetical order and adds each to the digest."""
    with safe_open(path, framework="pt") as file:
        for name in sorted(file.keys()):
            tensor = file.get_tensor(name).contiguous()
            digest.add(name, tensor)
            yield name, tensor


def receive_tensors(
    address: str, port: int, version: str, device: torch.device, digest: WeightDigest
) -> Weights:
    """Yields tensors in alphabetical order as they arrive, and adds each to the digest.

    Args:
        address: of the sender's store.
        port: of the sender's store.
        version: of the weights that the sender must have.
        device: of the tensors.
        digest: of names, dtypes, shapes and bytes.

    Raises:
        InterruptedTransfer: the sender ended, or has other weights.
    """
    try:
        store = TCPStore(address, port, is_master=False, timeout=TRANSFER_TIMEOUT)
        own = PrefixStore(f"receiver/{store.add('receivers', 1)}", store)
        own.set("version", version)
        header = json.loads(own.get("header"))
        if header["version"] != version:
            raise InterruptedTransfer(f"the sender has weights {header['version']}, not {version}")
        group = process_group(own, 1, device if header["backend"] == "nccl" else None)
        for name, dtype, shape in header["tensors"]:
            tensor = torch.empty(shape, dtype=getattr(torch, dtype), device=device)
            for part in byte_parts(tensor):
                # gloo knows the memory of the machine only
                is_direct = header["backend"] == "nccl" or device.type == "cpu"
                received = part if is_direct else torch.empty(len(part), dtype=torch.uint8)
                group.recv([received], 0, 0).wait()
                if not is_direct:
                    part.copy_(received)
            digest.add(name, tensor)
            yield name, tensor
        own.set("received", "")
    except RuntimeError as error:
        cause = " ".join(str(error).split())[:200]
        raise InterruptedTransfer(f"{type(error).__name__}: {cause}") from error


def process_group(store: Store, rank: int, device: torch.device | None) -> Any:
    """The group of a sender, rank 0, and a receiver, rank 1, apart from any default group.

    Args:
        store: of the two.
        rank: of this process.
        device: CUDA device for NCCL; None: gloo.
    """
    if device is None:
        return ProcessGroupGloo(PrefixStore("group", store), rank, 2, TRANSFER_TIMEOUT)
    from torch.distributed import ProcessGroupNCCL

    options = ProcessGroupNCCL.Options()
    options._timeout = TRANSFER_TIMEOUT
    torch.cuda.set_device(device)
    return ProcessGroupNCCL(PrefixStore("group", store), rank, 2, options)


def byte_parts(tensor: torch.Tensor) -> Iterator[torch.Tensor]:
    """The bytes of a contiguous tensor in parts that are sent one by one."""
    if tensor.numel():
        yield from tensor.reshape(-1).view(torch.uint8).split(PART_BYTES)
