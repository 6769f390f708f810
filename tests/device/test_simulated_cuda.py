"""The library on simulated CUDA devices: the tests in `on_*.py` run in a process that has them."""

import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

from tests.helpers import simulated_cuda

TIME_LIMITS = {"not slow": 300, "slow": 1800}  # in seconds
FILES = sorted(map(str, Path(__file__).parent.glob("on_*.py")))


@pytest.mark.skipif(not simulated_cuda.has_compiler(), reason="needs a C++ compiler")
@pytest.mark.slow
@pytest.mark.parametrize("selection", TIME_LIMITS)
def test_on_simulated_cuda_devices(selection: str):
    limit = TIME_LIMITS[selection]
    command = [sys.executable, "-m", "tests.helpers.simulated_cuda", *FILES, "-m", selection]
    command += [
        "-o",
        f"faulthandler_timeout={limit // 2}",
    ]  # prints the stacks of a test that hangs
    with tempfile.TemporaryFile("w+") as output:
        process = subprocess.Popen(command, stdout=output, stderr=subprocess.STDOUT)
        try:
            code = process.wait(limit)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
            code = f"still running after {limit} s"
        output.seek(0)
        assert code == 0, f"{code}\n{output.read()[-8000:]}"
