"""Rows of logits of a large vocabulary in C: `vocabulary.c` has the functions."""

from ctypes import c_double, c_int64, c_void_p

import torch
from jaxtyping import Float
from torch import Tensor

from grupo import native


def takes(logits: Tensor) -> bool:
    """Are there functions for such numbers, where these are?"""
    return logits.device.type == "cpu" and native.library(logits.dtype) is not None


def call(name: str, logits: Float[Tensor, "m V"], temperature: float, *told: Tensor) -> None:
    """A function of logits that lie row after row, and of what else it is told, on all threads."""
    sizes = map(c_int64, (*logits.shape, torch.get_num_threads()))
    kept = [one.contiguous() for one in told]
    places = (c_void_p(native.at(one)) for one in (logits, *kept))
    getattr(native.library(logits.dtype), name)(*sizes, c_double(1 / temperature), *places)
