"""Weights packed for the C products of few rows: `gemm_panels.h`, or `bfloat16.h`."""

import ctypes

import torch
from torch import Tensor

from grupo.kernels import native
from grupo.kernels.llama.ctypes_structs import ModelShape

PANEL = 32  # the largest number of weight rows in a panel


def panels_size(weight: Tensor, dtype: torch.dtype) -> tuple[int, int]:
    """Rows and columns of a weight (n, k) in panels of a type, padded."""
    n, k = weight.shape
    return -(-n // PANEL) * PANEL, k + k % 2 if dtype == torch.bfloat16 else k


def panels_dtype(products: torch.dtype, weight: torch.dtype) -> torch.dtype:
    """Type of panels: bfloat16 for products in bfloat16, otherwise that of the weight."""
    return torch.bfloat16 if products == torch.bfloat16 else weight


def pack_panels(library: ctypes.CDLL, shape: ModelShape, weight: Tensor, panels: Tensor) -> Tensor:
    """Write a weight (n, k) to `panels`, of `panels_size`, and return them.

    Args:
        library: the compiled C functions.
        shape: sizes of the model.
        weight: the weight.
        panels: bfloat16, or the type of the weight.
    """
    n, k = weight.shape
    if panels.dtype == torch.bfloat16:
        native.call(library, "panels_bf16", shape, n, k, weight.float(), panels)
    else:
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
