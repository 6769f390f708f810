"""The C structures of the native Llama kernels: model shape, layer weights, decode step."""

import ctypes
from collections.abc import Sequence
from ctypes import Structure, c_double, c_int64, c_void_p

from torch import Tensor

from grupo.kernels.native import data_pointer

WEIGHT_NAMES = "norm q k v qb kb vb qn kn o norm2 gate up down".split()  # noqa: SIM905


class ModelShape(Structure):
    """`ModelShape` of `layer.h`: number of threads, sizes, and epsilon of the norms."""

    _fields_ = (
        ("gemm", c_void_p),
        ("set_threads", c_void_p),
        *[(name, c_int64) for name in ("threads", "layers", "h", "H", "K", "d", "I")],
        ("eps", c_double),
    )


class LayerPointers(Structure):
    """`LayerPointers` of `layer.h`: addresses of a layer's weights, attention scale and window."""

    _fields_ = (
        *[(name, c_void_p) for name in WEIGHT_NAMES],
        ("scale", c_double),
        ("window", c_int64),
    )


class DecodeStepArgs(Structure):
    """`DecodeStepArgs` of `decode.c`: one more token in every row."""

    _fields_ = (
        *[(name, c_int64) for name in ("rows", "capacity", "width", "rounded")],
        *[(name, c_void_p) for name in ("num_generated", "prefix_index", "prefix_length")],
        *[(name, c_void_p) for name in ("cos", "sin")],
        *[(name, c_void_p) for name in ("suffix_k", "suffix_v", "prefix_k", "prefix_v")],
        ("activations", c_void_p),
    )


def pointer_array(tensors: Sequence[Tensor]) -> ctypes.Array[c_void_p]:
    """The data addresses of several tensors."""
    return (c_void_p * len(tensors))(*map(data_pointer, tensors))
