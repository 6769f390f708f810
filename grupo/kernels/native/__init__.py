"""Native kernels: C compiled once for this processor, next to torch's matrix products.

Without a compiler, callers fall back to slower torch implementations with equal results; one line
of the log names the cause.

Not `torch.utils.cpp_extension.load`: it needs ninja, even if nothing is to be compiled, and a C++
compiler, and it waits forever for the lock of a build that was killed. Its first compilation takes
as long (3.5 s against 3.1 s), each later process 0.09 s against 0.005 s: medians of 7 alternating
processes that timed `import torch.utils.cpp_extension` with `load`, and `library(torch.float32)`.
"""

import ctypes
import hashlib
import logging
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

logger = logging.getLogger(__name__)
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
# the C type, whether it is double, and the BLAS product
C_TYPES = {torch.float32: ("float", 0, "sgemm_"), torch.float64: ("double", 1, "dgemm_")}


def data_pointer(x: Tensor | None) -> int | None:
    """Address of a tensor's data; None stands for a null pointer."""
    return None if x is None else x.data_ptr()


def call(library: CDLL, name: str, *args: Any) -> Any:
    """Calls a C function; tensors are passed as pointers, structures by reference."""
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
    """The C functions for a dtype, or None if they cannot be compiled."""
    if dtype not in C_TYPES:
        return None
    real, wide, gemm = C_TYPES[dtype]
    if gemm_address(dtype) is None:
        return _warn_of_fallback(f"torch's library exports no BLAS function {gemm!r}")
    flags = [*COMPILE_FLAGS, f"-DREAL={real}", f"-DWIDE={wide}"]
    with suppress(OSError, subprocess.SubprocessError):
        return _load_or_compile(_cache_folder(), flags)
    try:  # without a writable cache folder, compile for this process alone
        with tempfile.TemporaryDirectory() as folder:
            return _load_or_compile(Path(folder), flags)
    except (OSError, subprocess.SubprocessError) as error:
        return _warn_of_fallback(_compiler_failure(error))


@cache
def _warn_of_fallback(cause: str) -> None:
    """Logs, once per cause, that torch replaces the C functions."""
    logger.warning("No C kernels, so that a CPU is about half as fast: %s", cause)


def _compiler_failure(error: OSError | subprocess.SubprocessError) -> str:
    """One line about a failed compilation: the compiler's first error, otherwise the exception."""
    output = error.stderr if isinstance(error, subprocess.CalledProcessError) else b""
    lines = [line for line in output.decode(errors="replace").splitlines() if "error" in line]
    cause = lines[0] if lines else f"{type(error).__name__}: {error}"
    return f"the C compiler {compiler_command()!r} (CC, otherwise cc) failed ({cause:.300})"


def gemm_address(dtype: torch.dtype) -> int | None:
    """Address of the matrix product that torch is linked with."""
    return torch_symbol(C_TYPES[dtype][2])


def set_threads_address() -> int | None:
    """Address of the function that limits the threads of a matrix product, if torch has one."""
    return torch_symbol("MKL_Set_Num_Threads_Local")


@cache
def torch_symbol(name: str) -> int | None:
    """Address of a function in torch's own library, or None if it is missing."""
    folder = Path(torch.__file__).parent / "lib"
    libraries = [*folder.glob("libtorch_cpu.*")]
    if not libraries:
        return None
    try:
        return ctypes.cast(getattr(CDLL(str(libraries[0])), name), c_void_p).value
    except (OSError, AttributeError):
        return None


def _load_or_compile(folder: Path, flags: Sequence[str]) -> CDLL:
    """The library in a cache folder, compiled if it is missing or damaged.

    Other processes may be compiling it at the same time.
    """
    cached = folder / f"{_cache_key(flags)}.so"
    with suppress(OSError):
        return CDLL(str(cached))
    folder.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=folder) as beside:
        target = Path(beside) / cached.name
        _compile(target, flags)
        loaded = CDLL(str(target))  # a library that does not load is not cached
        target.replace(cached)
    return loaded


def _cache_key(flags: Sequence[str]) -> str:
    """Hash of the sources, the flags and the processor."""
    sources = sorted([*SOURCE_FOLDER.glob("*.c"), *SOURCE_FOLDER.glob("*.h")])
    text = "".join(path.read_text() for path in sources)
    return hashlib.sha256(repr((text, flags, _processor_description())).encode()).hexdigest()[:16]


def _compile(target: Path, flags: Sequence[str]) -> None:
    sources = sorted(SOURCE_FOLDER.glob("*.c"))
    command = [
        *shlex.split(compiler_command()),
        *flags,
        *map(str, sources),
        "-o",
        str(target),
        "-lm",
    ]
    subprocess.run(command, check=True, capture_output=True, timeout=120)


def compiler_command() -> str:
    """The command of the C compiler, with options."""
    return os.environ.get("CC", "cc")


def _cache_folder() -> Path:
    """The user's cache folder for grupo."""
    return Path(os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache")) / "grupo"


def _processor_description() -> str:
    """The properties of the processor that `-march=native` depends on."""
    info = Path("/proc/cpuinfo")
    lines = info.read_text().split("\n\n")[0].splitlines() if info.exists() else []
    features = [line for line in lines if line.startswith(("model name", "flags", "Features"))]
    return "\n".join([platform.machine(), platform.processor(), *features])
