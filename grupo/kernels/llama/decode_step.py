"""One more token in every row."""

import ctypes
from collections.abc import Sequence

from torch import Tensor

from grupo.kernels import native
from grupo.kernels.decode_state import Decoding
from grupo.kernels.llama import ctypes_structs
from grupo.kernels.llama.ctypes_structs import Step, table
from grupo.kernels.llama.forward_backward import Lines
from grupo.kernels.llama.layers import Layer

PANEL = 16  # rows of a weight that stand together, at most: `panels.h` fills up the last
PROJECTIONS = "q", "k", "v", "o", "gate", "up", "down"


Ready = ctypes.Array[ctypes_structs.Layer]


def ready(lines: Lines, layers: Sequence[Layer]) -> Ready:
    """Layers as `decode.c` wants them: the weights of projections in panels, as they are now."""
    told = (ctypes_structs.Layer * len(layers))()
    for i, layer in enumerate(layers):
        told[i] = layer.told
        for name in PROJECTIONS:
            weight = layer.weights[name]
            n, k = weight.shape
            place = lines.scratch.room(f"{name}{i}", -(-n // PANEL) * PANEL, k, weight.detach())
            lines.call("panels", n, k, weight, place)
            setattr(told[i], name, native.at(place))
    return told


def decode(
    lines: Lines,
    layers: Ready,
    x: Tensor,
    decoding: Decoding,
    records: Sequence[Tensor],
) -> None:
    """All layers, in C: `x` (R, h) holds embeddings, then what the last layer says of them."""
    one = x.new_empty(len(x), lines.shape.K, lines.shape.d)
    states = [decoding.room_for(i, one, one) for i in range(len(layers))]
    flat = [[part for state in layer for part in state] for layer in states]  # own, then trunks
    told = [decoding.said, decoding.trunk, decoding.length, lines.cos, lines.sin]
    tables = [*map(table, zip(*flat, strict=True)), table(records)]
    cells, width = flat[0][0].shape[2], flat[0][2].shape[2]
    places = [*map(native.at, told), *map(ctypes.addressof, tables)]
    step = Step(len(x), cells, width, *places)
    if lines.call("decode", layers, step, x):
        raise MemoryError("no memory for rows that are sampled")
