"""Rows of logits of a large vocabulary in C: `vocabulary.c` has the functions."""

from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor

from grupo.kernels import native


def is_supported(logits: Tensor) -> bool:
    """Are there functions for such numbers, where these are?"""
    return logits.device.type == "cpu" and native.library(logits.dtype) is not None


def call(name: str, logits: Float[Tensor, "n V"], temperature: float, *args: Tensor) -> None:
    """A function of rows of logits, and of what else it is told of each, on all threads."""
    library: Any = native.library(logits.dtype)
    sizes = len(args[0]), logits.shape[1], torch.get_num_threads()
    native.call(library, name, *sizes, 1 / temperature, logits, *[one.contiguous() for one in args])
