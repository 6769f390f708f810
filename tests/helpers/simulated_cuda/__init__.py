"""A process in which torch has two CUDA devices, which are simulated in host memory.

    python -m tests.helpers.simulated_cuda tests/device/on_policies.py -k lora

runs tests with pytest in such a process. The device checks arguments as CUDA does, so that a tensor
on the wrong device raises an error. It computes with the CPU's kernels: it has neither streams nor
graphs nor kernels of its own, and it says nothing of speed.

torch decides while it is imported which devices it has; the library is therefore loaded before.
"""

import ctypes
import hashlib
import os
import shutil
import subprocess
import tempfile
from importlib.metadata import version
from importlib.util import find_spec
from pathlib import Path

SOURCE = Path(__file__).with_name("device.cpp")
COMPILER = os.environ.get("CXX") or "c++"
FLAGS = ("-std=c++20", "-O0", "-fPIC", "-shared", "-w")


def has_compiler() -> bool:
    """Whether the library can be compiled."""
    return shutil.which(COMPILER) is not None


def library() -> Path:
    """The compiled library for the installed torch, compiled once (10 s)."""
    spec = find_spec("torch")
    assert spec
    assert spec.origin
    torch = Path(spec.origin).parent
    # the library loads torch's libraries from this path: another environment needs another file
    inputs = SOURCE.read_bytes(), version("torch").encode(), str(torch).encode()
    key = hashlib.sha256(b"".join(inputs)).hexdigest()[:16]
    file = Path(tempfile.gettempdir()) / f"grupo-simulated-cuda-{key}.so"
    if not file.exists():
        unfinished = file.with_suffix(f".{os.getpid()}")
        include, lib = torch / "include", torch / "lib"
        command = [
            *(COMPILER, *FLAGS, f"-I{include}", f"-I{include}/torch/csrc/api/include"),
            *(str(SOURCE), "-o", str(unfinished)),
            *(f"-L{lib}", "-ltorch_cpu", "-lc10", f"-Wl,-rpath,{lib}"),
        ]
        subprocess.run(command, check=True)
        unfinished.rename(file)
    return file


def start() -> None:
    """Load the library, then torch, and let `torch.cuda` find the simulated devices."""
    ctypes.CDLL(str(library()), ctypes.RTLD_GLOBAL)
    from tests.helpers.simulated_cuda import torch_cuda

    torch_cuda.replace_functions()
