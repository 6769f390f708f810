"""A lack of memory is recognised, named, and distinguished from other errors."""

import errno
import subprocess
import sys

import pytest
import torch
from safetensors import SafetensorError

from grupo.util.errors import ConfigError
from grupo.util.exit_codes import EXIT_CONFIG_ERROR, EXIT_STOPPED, error_message, exit_code
from grupo.util.out_of_memory import GPU_ADVICE, HOST_ADVICE, out_of_memory_message


def caused_by(error: Exception, cause: Exception) -> Exception:
    error.__cause__ = cause
    return error


HOST = {
    "Python": MemoryError(),
    "the system": OSError(errno.ENOMEM, "Cannot allocate memory"),
    "C++": RuntimeError("std::bad_alloc"),
    "safetensors": SafetensorError("I/O error: Cannot allocate memory (os error 12)"),
    "a model that does not load": caused_by(
        ConfigError("model: it does not load"),
        RuntimeError("DefaultCPUAllocator: can't allocate memory: you tried to allocate 8 bytes"),
    ),
    "a group of errors": ExceptionGroup("several", [ValueError("no"), MemoryError()]),
}
GPU = {
    "torch": torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 2.00 GiB."),
    "the driver": RuntimeError("CUDA error: out of memory\nCUDA kernel errors might be"),
    "cuBLAS": RuntimeError("CUDA error: CUBLAS_STATUS_ALLOC_FAILED when calling `cublasCreate`"),
    "cuDNN": RuntimeError("cuDNN error: CUDNN_STATUS_ALLOC_FAILED"),
    "NCCL, of its own buffers": torch.distributed.DistBackendError(
        "NCCL error in: NCCLUtils.cpp:94, unhandled system error. Last error: Failed to CUDA"
        " calloc 10485760 bytes"
    ),
    "NCCL, of the driver": torch.distributed.DistBackendError(
        "NCCL error in: NCCLUtils.cpp:94, unhandled cuda error. Last error: Cuda failure 2 'out of"
        " memory'"
    ),
}
OTHER = [
    KeyError("out of memory"),
    ConfigError("tasks: line 3 reads 'out of memory'"),
    RuntimeError("shapes cannot be multiplied"),
    OSError(errno.ENOSPC, "No space left on device"),
]


@pytest.mark.parametrize("error", HOST.values(), ids=HOST)
def test_a_lack_of_host_memory_has_its_own_message_and_exit_code(error):
    assert exit_code(error) == EXIT_STOPPED
    assert error_message(error).startswith("Out of memory: ")
    assert error_message(error).endswith(HOST_ADVICE)
    assert len(error_message(error).splitlines()) == 1


@pytest.mark.parametrize("error", GPU.values(), ids=GPU)
def test_a_lack_of_gpu_memory_has_its_own_message_and_exit_code(error):
    assert exit_code(error) == EXIT_STOPPED
    assert (
        error_message(error)
        == f"Out of memory: {str(error).splitlines()[0].strip('. ')}. {GPU_ADVICE}"
    )


@pytest.mark.parametrize("error", OTHER, ids=repr)
def test_other_errors_keep_their_message_and_exit_code(error):
    assert out_of_memory_message(error) == ""
    assert error_message(error) == str(error)
    assert (exit_code(error) == EXIT_CONFIG_ERROR) == isinstance(error, ConfigError)


LIMITED = """
import resource, sys
from pathlib import Path
from grupo.util.out_of_memory import out_of_memory_message
size = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
try:
    if sys.argv[1] == "limited":
        resource.setrlimit(resource.RLIMIT_AS, (size + (64 << 20),) * 2)
    blocks = [bytearray(1 << 20) for _ in range(256)]
except Exception as error:
    print(out_of_memory_message(error))
"""


@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
@pytest.mark.parametrize("limit", ["limited", "unlimited"])
def test_a_process_at_its_memory_limit_still_writes_the_message(limit):
    command = [sys.executable, "-c", LIMITED, limit]
    result = subprocess.run(command, capture_output=True, text=True, check=True)
    expected = f"Out of memory: MemoryError. {HOST_ADVICE}\n"
    assert result.stdout == (expected if limit == "limited" else "")
