"""One decode step of all layers in C."""

import ctypes
import math
from collections.abc import Sequence

import torch
from torch import Tensor

from grupo.kernels import native
from grupo.kernels.decode_state import DecodeState
from grupo.kernels.llama import ctypes_structs
from grupo.kernels.llama.ctypes_structs import DecodeStepArgs, pointer_array
from grupo.kernels.llama.forward_backward import LayerOps
from grupo.kernels.llama.layers import LayerWeights
from grupo.kernels.llama.panels import pack_panels, panels_dtype, panels_size

PROJECTIONS = "q", "k", "v", "o", "gate", "up", "down"
PANELS = "panels"  # name of the buffer of all layers' panels

LayerArray = ctypes.Array[ctypes_structs.LayerPointers]


def prepare_layers(layer_ops: LayerOps, layers: Sequence[LayerWeights]) -> LayerArray:
    """The layers as `decode.c` takes them, with the current weights of projections in panels.

    All panels are one buffer: the C library returns large buffers to the operating system when
    they are freed, and keeps the memory of many small ones.
    """
    dtype = panels_dtype(layer_ops.products.dtype, layers[0].norm.dtype)
    names = [(i, name) for i in range(len(layers)) for name in PROJECTIONS]
    sizes = [math.prod(panels_size(layers[i].weights[name], dtype)) for i, name in names]
    buffer = layer_ops.scratch.get(PANELS, 1, sum(sizes), torch.empty(0, dtype=dtype))
    layer_ops.call_native("use_large_pages", buffer.nbytes, buffer)
    prepared = (ctypes_structs.LayerPointers * len(layers))(*(x.pointers for x in layers))
    for (i, name), panels in zip(names, buffer[0].split(sizes), strict=True):
        weight = layers[i].effective_weight(name)
        pack_panels(layer_ops.library, layer_ops.shape, weight, panels)
        setattr(prepared[i], name, native.data_pointer(panels))
    return prepared


def decode_step(
    layer_ops: LayerOps,
    layers: LayerArray,
    x: Tensor,
    decode_state: DecodeState,
    activations: Sequence[Tensor],
) -> None:
    """Evaluates one token in each of R rows.

    Args:
        layer_ops: operations for these tokens.
        layers: result of `prepare_layers`.
        x: embeddings (R, h), overwritten with the output of the last layer.
        decode_state: receives the keys and values of the tokens.
        activations: of each layer (R, width), filled in.
    """
    token_kv = x.new_empty(len(x), layer_ops.shape.K, layer_ops.shape.d)
    kv = [decode_state.kv_buffers(i, token_kv, token_kv) for i in range(len(layers))]
    flat = [(*suffix, *prefix) for suffix, prefix in kv]
    tensors = [
        decode_state.num_generated,
        decode_state.prefix_index,
        decode_state.prefix_length,
        layer_ops.cos,
        layer_ops.sin,
    ]
    arrays = [*map(pointer_array, zip(*flat, strict=True)), pointer_array(activations)]
    addresses = [*map(native.data_pointer, tensors), *map(ctypes.addressof, arrays)]
    capacity = flat[0][0].shape[2]
    width = flat[0][2].shape[2]
    is_rounded = layer_ops.products.dtype == torch.bfloat16
    args = DecodeStepArgs(len(x), capacity, width, is_rounded, *addresses)
    if layer_ops.call_native("decode", layers, args, x):
        raise MemoryError("out of memory in a decode step")
