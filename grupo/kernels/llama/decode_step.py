"""One more token in every row."""

import ctypes
from collections.abc import Sequence

from torch import Tensor

from grupo.kernels import native
from grupo.kernels.decode_state import DecodeState
from grupo.kernels.llama import ctypes_structs
from grupo.kernels.llama.ctypes_structs import DecodeStepArgs, pointer_array
from grupo.kernels.llama.forward_backward import LayerOps
from grupo.kernels.llama.layers import LayerWeights

PANEL = 16  # rows of a weight that stand together, at most: `panels.h` fills up the last
PROJECTIONS = "q", "k", "v", "o", "gate", "up", "down"


LayerArray = ctypes.Array[ctypes_structs.LayerPointers]


def prepare_layers(layer_ops: LayerOps, layers: Sequence[LayerWeights]) -> LayerArray:
    """Layers as `decode.c` wants them: the weights of projections in panels, as they are now."""
    told = (ctypes_structs.LayerPointers * len(layers))()
    for i, layer in enumerate(layers):
        told[i] = layer.pointers
        for name in PROJECTIONS:
            weight = layer.weights[name]
            n, k = weight.shape
            place = layer_ops.scratch.get(f"{name}{i}", -(-n // PANEL) * PANEL, k, weight.detach())
            layer_ops.call_native("panels", n, k, weight, place)
            setattr(told[i], name, native.data_pointer(place))
    return told


def decode_step(
    layer_ops: LayerOps,
    layers: LayerArray,
    x: Tensor,
    decode_state: DecodeState,
    activations: Sequence[Tensor],
) -> None:
    """All layers, in C: `x` (R, h) holds embeddings, then what the last layer says of them."""
    one = x.new_empty(len(x), layer_ops.shape.K, layer_ops.shape.d)
    states = [decode_state.kv_buffers(i, one, one) for i in range(len(layers))]
    flat = [[part for state in layer for part in state] for layer in states]  # own, then trunks
    told = [
        decode_state.num_generated,
        decode_state.prefix_index,
        decode_state.prefix_length,
        layer_ops.cos,
        layer_ops.sin,
    ]
    tables = [*map(pointer_array, zip(*flat, strict=True)), pointer_array(activations)]
    cells, width = flat[0][0].shape[2], flat[0][2].shape[2]
    places = [*map(native.data_pointer, told), *map(ctypes.addressof, tables)]
    step = DecodeStepArgs(len(x), cells, width, *places)
    if layer_ops.call_native("decode", layers, step, x):
        raise MemoryError("no memory for rows that are sampled")
