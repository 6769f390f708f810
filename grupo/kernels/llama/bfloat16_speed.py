"""How much faster this CPU multiplies in bfloat16 than in float32, at the sizes of a model."""

from collections.abc import Callable
from functools import cache

import torch

from grupo.kernels import native
from grupo.kernels.llama.ctypes_structs import ModelShape
from grupo.kernels.llama.panels import multiply_panels, pack_panels, panels_size
from grupo.util.timing import shortest_seconds

GENERATED_ROWS = 32  # tokens of a decode step
UPDATED_ROWS = 1024  # tokens of a micro-batch
WEIGHTS_BYTES = 64 << 20  # more than a processor's cache: a decode step reads its weights
BACKWARD_PASSES = 2.0  # the products of a backward pass, relative to those of a forward pass
REPEATS = 5


@cache  # a second measurement might choose another type
def bfloat16_speedup(inputs: int, outputs: int) -> float:
    """How many times as fast the products of a training step are in bfloat16 as in float32.

    A step decodes its tokens with the C kernels, a few rows at a time, and backpropagates them with
    torch, many rows at a time. Takes less than a second.

    Args:
        inputs: Inputs of the model's largest linear layers.
        outputs: Outputs of these layers.
    """
    types = torch.float32, torch.bfloat16
    full, rounded = (_seconds_per_token(inputs, outputs, dtype) for dtype in types)
    return full / rounded


def _seconds_per_token(inputs: int, outputs: int, dtype: torch.dtype) -> float:
    weights = torch.randn(max(1, WEIGHTS_BYTES // (4 * inputs * outputs)), outputs, inputs)
    few = torch.randn(GENERATED_ROWS, inputs)
    many = torch.randn(UPDATED_ROWS, inputs).to(dtype)
    first = weights[0].to(dtype)
    decode = shortest_seconds(_decode_products(few, weights, dtype), REPEATS)
    update = shortest_seconds(lambda: torch.mm(many, first.mT), REPEATS)
    return decode / (len(few) * len(weights)) + BACKWARD_PASSES * update / len(many)


def _decode_products(
    x: torch.Tensor, weights: torch.Tensor, dtype: torch.dtype
) -> Callable[[], object]:
    """The products of a decode step, of the C kernels if they multiply in that type."""
    library = native.library(torch.float32)
    shape = ModelShape(threads=torch.get_num_threads())
    if library and (dtype == torch.float32 or native.call(library, "has_bfloat16", shape)):
        empty = [torch.empty(panels_size(w, dtype), dtype=dtype) for w in weights]
        panels = [pack_panels(library, shape, *pair) for pair in zip(weights, empty, strict=True)]
        out = torch.empty(len(x), weights.shape[1])
        return lambda: [multiply_panels(library, shape, x, weight, out) for weight in panels]
    operand, converted = x.to(dtype), weights.to(dtype)
    return lambda: [torch.mm(operand, weight.mT) for weight in converted]
