"""The library on a simulated CUDA device; files `on_*.py` hold the tests."""

import subprocess
import sys
from pathlib import Path

import pytest

from tests.helpers import simulated_cuda

FILES = sorted(Path(__file__).parent.glob("on_*.py"))


@pytest.mark.skipif(not simulated_cuda.has_compiler(), reason="needs a C++ compiler")
@pytest.mark.parametrize("file", FILES, ids=lambda file: file.stem)
def test_on_a_simulated_cuda_device(file: Path):
    command = [sys.executable, "-m", "tests.helpers.simulated_cuda", str(file)]
    result = subprocess.run(command, capture_output=True, text=True)
    assert result.returncode == 0, result.stdout[-4000:] + result.stderr[-2000:]
