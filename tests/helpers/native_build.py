"""A compiler that does as it is told, and libraries that are asked for something."""

from ctypes import CDLL, byref, c_int64, c_void_p
from dataclasses import dataclass
from pathlib import Path

import torch

from grupo.kernels import native
from grupo.kernels.llama.ctypes_structs import ModelShape

QUICK = [flag.replace("-O3", "-O0") for flag in native.COMPILE_FLAGS]


@dataclass(frozen=True)
class Compiler:
    """A script that notes when it is called."""

    path: Path

    def __post_init__(self) -> None:
        self.does('exec cc "$@"')

    def does(self, what: str) -> None:
        """What it does from now on."""
        self.path.write_text(f'#!/bin/sh\necho called >> "{self.path}.log"\n{what}\n')
        self.path.chmod(0o755)

    @property
    def called(self) -> int:
        """How often it was."""
        log = Path(f"{self.path}.log")
        return len(log.read_text().splitlines()) if log.exists() else 0


def works(c: CDLL | None, dtype: torch.dtype = torch.float32) -> bool:
    """Does it know that the root of the mean square of (3, 4) is 5 / sqrt(2)?"""
    assert c
    x, weight = torch.tensor([[3.0, 4.0]], dtype=dtype), torch.tensor([5.0, 10.0], dtype=dtype)
    out, shape = torch.empty_like(x), ModelShape(threads=1, h=2, eps=0.0)
    told = [c_void_p(native.data_pointer(part)) for part in (x, weight, out)]
    c.norms(byref(shape), c_int64(1), told[0], c_int64(2), told[1], told[2])
    return torch.allclose(out, torch.tensor([[3.0, 8.0]], dtype=dtype) * 2**0.5)
