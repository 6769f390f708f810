"""Freed memory between live tensors goes back to the operating system."""

import ctypes
import subprocess
import sys

import pytest

PROGRAM = """
import torch
from grupo.util.heap import trim_heap

def resident():
    return int(open("/proc/self/statm").read().split()[1]) * 4096

large = torch.ones(1 << 22)  # freeing it raises the size from which glibc maps memory to 16 MiB
del large
tensors = [torch.ones(1 << 18) for _ in range(800)]  # a megabyte each
del tensors[::2]
before = resident()
trim_heap()
print((before - resident()) >> 20)
"""


@pytest.mark.skipif(
    sys.platform != "linux" or not hasattr(ctypes.CDLL(None), "mallinfo2"),
    reason="the C library is not glibc 2.33 or later",
)
def test_holes_between_live_tensors_are_returned():
    run = subprocess.run(
        [sys.executable, "-c", PROGRAM], capture_output=True, text=True, check=True
    )
    assert int(run.stdout) > 200  # of 400 MiB
