"""The C of this room: compiled once for this processor, and how it sees things."""

import ctypes
import hashlib
import os
import platform
import subprocess
import tempfile
from collections.abc import Sequence
from ctypes import CDLL, Structure, c_double, c_int64, c_void_p
from functools import cache
from pathlib import Path

import torch
from torch import Tensor

HERE = Path(__file__).parent
SOURCES = "decode.c", "lines.c"
FLAGS = "-O3 -march=native -fno-math-errno -fno-trapping-math -fopenmp -fPIC -shared".split()  # noqa: SIM905
REALS = {torch.float32: ("float", 0, "sgemm_"), torch.float64: ("double", 1, "dgemm_")}
WEIGHTS = "norm q k v qb kb vb qn kn o norm2 gate up down".split()  # noqa: SIM905


class Shape(Structure):
    """Of a body: `threads` that compute, sizes, `eps` of its norms."""

    _fields_ = (
        ("gemm", c_void_p),
        ("alone", c_void_p),
        *[(name, c_int64) for name in ("threads", "layers", "h", "H", "K", "d", "I")],
        ("eps", c_double),
    )


class Layer(Structure):
    """Where the weights of a layer are, and how it attends."""

    _fields_ = (*[(name, c_void_p) for name in WEIGHTS], ("scale", c_double), ("window", c_int64))


class Step(Structure):
    """Rows of which each reads one more token, as `decode.c` describes them."""

    tensors = "said", "trunk", "length", "cos", "sin"
    tables = "own_k", "own_v", "trunk_k", "trunk_v", "record"
    _fields_ = (
        *[(name, c_int64) for name in ("rows", "cells", "width")],
        *[(name, c_void_p) for name in (*tensors, *tables)],
    )


def at(x: Tensor | None) -> int | None:
    """Where a tensor's numbers are."""
    return None if x is None else x.data_ptr()


def table(tensors: Sequence[Tensor]) -> ctypes.Array[c_void_p]:
    """Where the numbers of several are."""
    return (c_void_p * len(tensors))(*map(at, tensors))


@cache
def library(dtype: torch.dtype) -> CDLL | None:
    """The functions for numbers of that kind; nothing where they cannot be compiled."""
    if dtype not in REALS or symbol(REALS[dtype][2]) is None:
        return None
    real, wide, _ = REALS[dtype]
    flags = [*FLAGS, f"-DREAL={real}", f"-DWIDE={wide}"]
    try:
        return CDLL(str(_compiled(flags)))
    except (OSError, subprocess.SubprocessError):
        return None


@cache
def symbol(name: str) -> int | None:
    """The address of a function that torch itself is linked with."""
    folder = Path(torch.__file__).parent / "lib"
    found = [*folder.glob("libtorch_cpu.*")]
    try:
        return ctypes.cast(getattr(CDLL(str(found[0])), name), c_void_p).value if found else None
    except (OSError, AttributeError):
        return None


def _compiled(flags: Sequence[str]) -> Path:
    """The compiled file; another process may be compiling it too."""
    sources = [HERE / name for name in SOURCES]
    text = "".join(path.read_text() for path in (*sources, HERE / "rows.h"))
    name = hashlib.sha256(repr((text, flags, _processor())).encode()).hexdigest()[:16]
    folder = _folder()
    made = folder / f"lean-{name}.so"
    if not made.exists():
        with tempfile.TemporaryDirectory(dir=folder) as beside:
            new = Path(beside) / made.name
            asked = [os.environ.get("CC", "cc"), *flags, *map(str, sources), "-o", str(new), "-lm"]
            subprocess.run(asked, check=True, capture_output=True, timeout=120)
            new.replace(made)
    return made


def _folder() -> Path:
    home = os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache")
    folder = Path(home) / "grupo"
    folder.mkdir(parents=True, exist_ok=True)
    return folder


def _processor() -> str:
    """What `-march=native` depends on."""
    info = Path("/proc/cpuinfo")
    said = info.read_text().split("\n\n")[0].splitlines() if info.exists() else []
    known = [line for line in said if line.startswith(("model name", "flags", "Features"))]
    return "\n".join([platform.machine(), platform.processor(), *known])
