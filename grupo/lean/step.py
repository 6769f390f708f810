"""One more token in every row."""

import ctypes
from collections.abc import Sequence

from torch import Tensor

from grupo import native
from grupo.engines.decoding import Decoding
from grupo.lean import structures
from grupo.lean.layers import Layer
from grupo.lean.lines import Lines
from grupo.lean.structures import Step, table


def decode(
    lines: Lines,
    layers: Sequence[Layer],
    x: Tensor,
    decoding: Decoding,
    records: Sequence[Tensor],
) -> None:
    """All layers, in C: `x` (R, h) holds embeddings, then what the last layer says of them."""
    one = x.new_empty(len(x), lines.shape.K, lines.shape.d)
    states = [decoding.states(i, one, one) for i in range(len(layers))]
    flat = [[part for state in layer for part in state] for layer in states]  # own, then trunks
    told = [decoding.said, decoding.trunk, decoding.length, lines.cos, lines.sin]
    tables = [*map(table, zip(*flat, strict=True)), table(records)]
    cells, width = flat[0][0].shape[2], flat[0][2].shape[2]
    places = [*map(native.at, told), *map(ctypes.addressof, tables)]
    step = Step(len(x), cells, width, *places)
    every = (structures.Layer * len(layers))(*(layer.told for layer in layers))
    call = ctypes.byref(lines.shape), every, ctypes.byref(step), ctypes.c_void_p(native.at(x))
    if lines.c.decode(*call):
        raise MemoryError("no memory for rows that are sampled")
