"""Computations in float32 without rounding, for comparisons of implementations."""

from collections.abc import Callable, Generator
from contextlib import contextmanager
from typing import Any

import torch
from torch import Tensor
from torch.overrides import TorchFunctionMode
from torch.utils._pytree import tree_map

HALF_PRECISION = (torch.bfloat16, torch.float16)


@contextmanager
def full_float32() -> Generator[None]:
    """Multiplies float32 matrices on CUDA in full precision.

    TF32 keeps 10 bits of the factors: two correct implementations then differ by about 1e-3.
    """
    matmul = torch.backends.cuda.matmul
    # torch refuses to read the older name once the newer one was set
    name, value = (
        ("fp32_precision", "ieee") if hasattr(matmul, "fp32_precision") else ("allow_tf32", False)
    )
    before = getattr(matmul, name)
    setattr(matmul, name, value)
    try:
        yield
    finally:
        setattr(matmul, name, before)


class Float32Activations(TorchFunctionMode):
    """Lets a model with weights in half precision compute as its copy in float32 would.

    Each operation gets float32 numbers, and so do the operations after it. A whole copy of the
    weights may have no room on a GPU: here a weight is widened for the operation that reads it, and
    an embedding afterwards. Quantized layers compute in their own type.
    """

    def __torch_function__(
        self, func: Callable[..., Any], types: Any, args: Any = (), kwargs: Any = None
    ) -> Any:
        kwargs = kwargs or {}
        if func is torch.nn.functional.embedding:
            return _widened(func(*args, **kwargs))
        if func.__name__ == "__get__":  # of an attribute, such as a shape
            return func(*args, **kwargs)
        args, kwargs = tree_map(_widened, (args, kwargs))
        if func is Tensor.to:  # activations may be cast to the type of a weight that is not widened
            args, kwargs = tree_map(_widened_type, (args, kwargs))
        return func(*args, **kwargs)


def _widened(value: Any) -> Any:
    is_half = isinstance(value, Tensor) and value.dtype in HALF_PRECISION
    return value.float() if is_half else value


def _widened_type(value: Any) -> Any:
    return torch.float32 if value in HALF_PRECISION else value
