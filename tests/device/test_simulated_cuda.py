"""The library on simulated CUDA devices: the tests in `on_*.py` run in a process that has them."""

import subprocess
import sys
from pathlib import Path

import pytest

from tests.helpers import simulated_cuda

FILES = sorted(map(str, Path(__file__).parent.glob("on_*.py")))


@pytest.mark.skipif(not simulated_cuda.has_compiler(), reason="needs a C++ compiler")
@pytest.mark.parametrize("selection", ["not slow", pytest.param("slow", marks=pytest.mark.slow)])
def test_on_simulated_cuda_devices(selection: str):
    command = [sys.executable, "-m", "tests.helpers.simulated_cuda", *FILES, "-m", selection]
    result = subprocess.run(command, capture_output=True, text=True)
    assert result.returncode == 0, result.stdout[-6000:] + result.stderr[-2000:]
