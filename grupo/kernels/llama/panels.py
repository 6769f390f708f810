"""Weights packed for the C products of few rows: `gemm_panels.h`, or `bfloat16.h`."""

import ctypes

import torch
from torch import Tensor

from grupo.kernels import native
from grupo.kernels.llama.activation_cache import ScratchBuffers
from grupo.kernels.llama.ctypes_structs import ModelShape

PANEL = 32  # the largest number of weight rows in a panel


def pack_panels(
    library: ctypes.CDLL,
    shape: ModelShape,
    scratch: ScratchBuffers,
    name: str,
    weight: Tensor,
    dtype: torch.dtype,
) -> Tensor:
    """A weight (n, k) in panels.

    Args:
        library: the compiled C functions.
        shape: sizes of the model.
        scratch: has the buffer that is filled.
        name: of the buffer.
        weight: the weight.
        dtype: bfloat16, or that of the weight.
    """
    n, k = weight.shape
    padded = -(-n // PANEL) * PANEL
    if dtype == torch.bfloat16:
        like = torch.empty(0, dtype=dtype)
        panels = scratch.get(f"{name} in bfloat16", padded, k + k % 2, like)
        native.call(library, "panels_bf16", shape, n, k, weight.float(), panels)
    else:
        panels = scratch.get(name, padded, k, weight.detach())
        native.call(library, "panels", shape, n, k, weight, panels)
    return panels


def multiply_panels(
    library: ctypes.CDLL, shape: ModelShape, x: Tensor, panels: Tensor, out: Tensor
) -> None:
    """Write the product of x (m, k) and a weight in panels to `out` (m, n)."""
    name = "matmul_panels_bf16" if panels.dtype == torch.bfloat16 else "matmul_panels"
    sizes = len(x), out.shape[1], x.shape[1]
    if native.call(library, name, shape, *sizes, x.contiguous(), panels, out) == 1:
        raise MemoryError("out of memory in a product")
