"""Copies of tensors on a device, made without waiting for it."""

import torch
from torch import Tensor


def to_device(x: Tensor, device: torch.device) -> Tensor:
    """The tensor on a device; the program goes on while a GPU copies it.

    `x.to(device)` waits until a GPU has done all the work that it was given before. From pinned
    memory, which the GPU reads by itself, nothing waits; torch does not use that memory for other
    tensors before it has been copied.
    """
    if device.type != "cuda" or not x.is_cpu:
        return x.to(device)
    return x.pin_memory().to(device, non_blocking=True)
