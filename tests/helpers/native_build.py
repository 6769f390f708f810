"""A scriptable C compiler, and a check of compiled libraries."""

from ctypes import CDLL, byref, c_int64, c_void_p
from dataclasses import dataclass
from pathlib import Path

import torch

from grupo.kernels import native
from grupo.kernels.llama.ctypes_structs import ModelShape

FAST_FLAGS = [flag.replace("-O3", "-O0") for flag in native.COMPILE_FLAGS]


@dataclass(frozen=True)
class Compiler:
    """A shell script in place of the compiler; it counts its calls."""

    path: Path

    def __post_init__(self) -> None:
        self.set_script('exec cc "$@"')

    def set_script(self, script: str) -> None:
        """Sets the commands of later calls."""
        self.path.write_text(f'#!/bin/sh\necho called >> "{self.path}.log"\n{script}\n')
        self.path.chmod(0o755)

    @property
    def num_calls(self) -> int:
        log = Path(f"{self.path}.log")
        return len(log.read_text().splitlines()) if log.exists() else 0


def is_working(library: CDLL | None, dtype: torch.dtype = torch.float32) -> bool:
    """Whether the library computes the root mean square of (3, 4), 5 / sqrt(2)."""
    assert library
    x = torch.tensor([[3.0, 4.0]], dtype=dtype)
    weight = torch.tensor([5.0, 10.0], dtype=dtype)
    out, shape = torch.empty_like(x), ModelShape(threads=1, h=2, eps=0.0)
    x_pointer, weight_pointer, out_pointer = (
        c_void_p(native.data_pointer(tensor)) for tensor in (x, weight, out)
    )
    library.norm_rows(byref(shape), c_int64(1), x_pointer, c_int64(2), weight_pointer, out_pointer)
    return torch.allclose(out, torch.tensor([[3.0, 8.0]], dtype=dtype) * 2**0.5)
