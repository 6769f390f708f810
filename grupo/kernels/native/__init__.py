"""C for what torch has no one call for: compiled once for this processor, beside torch's products.

Where it cannot be compiled nothing is lost but time: whoever would call it has another way.
"""

import ctypes
import hashlib
import os
import platform
import shlex
import subprocess
import tempfile
from collections.abc import Sequence
from contextlib import suppress
from ctypes import CDLL, c_double, c_int64, c_void_p
from functools import cache
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

SOURCE_FOLDER = Path(__file__).parent
COMPILE_FLAGS = [
    "-O3",
    "-march=native",
    "-fno-math-errno",
    "-fno-trapping-math",
    "-fopenmp",
    "-fPIC",
    "-shared",
]
C_TYPES = {torch.float32: ("float", 0, "sgemm_"), torch.float64: ("double", 1, "dgemm_")}


def data_pointer(x: Tensor | None) -> int | None:
    """Where a tensor's numbers are."""
    return None if x is None else x.data_ptr()


def call(library: CDLL, name: str, *args: Any) -> Any:
    """A function of the library, told numbers, tensors by where they are, and structures."""
    return getattr(library, name)(*map(_to_ctypes, args))


def _to_ctypes(value: Any) -> Any:
    match value:
        case Tensor():
            return c_void_p(data_pointer(value))
        case int():
            return c_int64(value)
        case float():
            return c_double(value)
        case _:
            return ctypes.byref(value)


@cache
def library(dtype: torch.dtype) -> CDLL | None:
    """The functions for numbers of that kind; nothing where they cannot be compiled."""
    if dtype not in C_TYPES or gemm_address(dtype) is None:
        return None
    real, wide, _ = C_TYPES[dtype]
    flags = [*COMPILE_FLAGS, f"-DREAL={real}", f"-DWIDE={wide}"]
    with suppress(OSError, subprocess.SubprocessError):
        return _load_or_compile(_cache_folder(), flags)
    with suppress(OSError, subprocess.SubprocessError), tempfile.TemporaryDirectory() as own:
        return _load_or_compile(
            Path(own), flags
        )  # where nothing can be kept it is compiled each time
    return None


def gemm_address(dtype: torch.dtype) -> int | None:
    """The address of the matrix product that torch itself is linked with."""
    return torch_symbol(C_TYPES[dtype][2])


def set_threads_address() -> int | None:
    """Where a thread says how many threads its products may have, if it can."""
    return torch_symbol("MKL_Set_Num_Threads_Local")


@cache
def torch_symbol(name: str) -> int | None:
    """The address of a function that torch itself is linked with."""
    folder = Path(torch.__file__).parent / "lib"
    found = [*folder.glob("libtorch_cpu.*")]
    try:
        return ctypes.cast(getattr(CDLL(str(found[0])), name), c_void_p).value if found else None
    except (OSError, AttributeError):
        return None


def _load_or_compile(folder: Path, flags: Sequence[str]) -> CDLL:
    """What a folder keeps, or is given to keep; another process may be compiling it too."""
    kept = folder / f"{_cache_key(flags)}.so"
    with suppress(OSError):  # it is not there, or damaged
        return CDLL(str(kept))
    folder.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=folder) as beside:
        new = Path(beside) / kept.name
        _compile(new, flags)
        loaded = CDLL(str(new))  # what does not load is not kept
        new.replace(kept)
    return loaded


def _cache_key(flags: Sequence[str]) -> str:
    """Another for whatever would be compiled to something else."""
    text = "".join(
        path.read_text()
        for path in sorted([*SOURCE_FOLDER.glob("*.c"), *SOURCE_FOLDER.glob("*.h")])
    )
    return hashlib.sha256(repr((text, flags, _processor_description())).encode()).hexdigest()[:16]


def _compile(target: Path, flags: Sequence[str]) -> None:
    compiler, sources = shlex.split(os.environ.get("CC", "cc")), sorted(SOURCE_FOLDER.glob("*.c"))
    asked = [*compiler, *flags, *map(str, sources), "-o", str(target), "-lm"]
    subprocess.run(asked, check=True, capture_output=True, timeout=120)


def _cache_folder() -> Path:
    """Where this user's programs keep what can be made again."""
    return Path(os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache")) / "grupo"


def _processor_description() -> str:
    """What `-march=native` depends on."""
    info = Path("/proc/cpuinfo")
    said = info.read_text().split("\n\n")[0].splitlines() if info.exists() else []
    known = [line for line in said if line.startswith(("model name", "flags", "Features"))]
    return "\n".join([platform.machine(), platform.processor(), *known])
