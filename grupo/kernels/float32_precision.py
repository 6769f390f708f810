"""Products of float32 numbers without rounding to TF32, for comparisons of implementations."""

from collections.abc import Iterator
from contextlib import contextmanager

import torch


@contextmanager
def full_float32() -> Iterator[None]:
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
