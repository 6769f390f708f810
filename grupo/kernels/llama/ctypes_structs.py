"""How C sees a body: its shape, its layers, a step of rows."""

import ctypes
from collections.abc import Sequence
from ctypes import Structure, c_double, c_int64, c_void_p

from torch import Tensor

from grupo.kernels.native import data_pointer

WEIGHT_NAMES = "norm q k v qb kb vb qn kn o norm2 gate up down".split()  # noqa: SIM905


class ModelShape(Structure):
    """Of a body: `threads` that compute, sizes, `eps` of its norms."""

    _fields_ = (
        ("gemm", c_void_p),
        ("alone", c_void_p),
        *[(name, c_int64) for name in ("threads", "layers", "h", "H", "K", "d", "I")],
        ("eps", c_double),
    )


class LayerPointers(Structure):
    """Where the weights of a layer are, and how it attends."""

    _fields_ = (
        *[(name, c_void_p) for name in WEIGHT_NAMES],
        ("scale", c_double),
        ("window", c_int64),
    )


class DecodeStepArgs(Structure):
    """Rows of which each reads one more token, as `decode.c` describes them."""

    _fields_ = (
        *[(name, c_int64) for name in ("rows", "cells", "width")],
        *[(name, c_void_p) for name in ("said", "trunk", "length", "cos", "sin")],
        *[(name, c_void_p) for name in ("own_k", "own_v", "trunk_k", "trunk_v", "record")],
    )


def pointer_array(tensors: Sequence[Tensor]) -> ctypes.Array[c_void_p]:
    """Where the numbers of several are."""
    return (c_void_p * len(tensors))(*map(data_pointer, tensors))
