"""Native log-softmax, entropy and sampling over large vocabularies, in `log_softmax.c`."""

from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor

from grupo.kernels import native


def is_supported(logits: Tensor) -> bool:
    """Whether the C functions exist for the dtype and device of the logits."""
    return logits.device.type == "cpu" and native.library(logits.dtype) is not None


def call(name: str, logits: Float[Tensor, "n V"], temperature: float, *args: Tensor) -> None:
    """Calls a C function on all threads.

    Args:
        name: of the function.
        logits: rows of logits.
        temperature: divides the logits.
        args: one entry for each row that is computed; made contiguous.
    """
    library: Any = native.library(logits.dtype)
    sizes = len(args[0]), logits.shape[1], torch.get_num_threads()
    contiguous = [x.contiguous() for x in args]
    native.call(library, name, *sizes, 1 / temperature, logits, *contiguous)
