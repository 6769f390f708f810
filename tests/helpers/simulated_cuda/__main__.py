"""Runs pytest in a process with simulated CUDA devices."""

import sys

from tests.helpers import simulated_cuda

simulated_cuda.start()

import pytest  # noqa: E402

sys.exit(pytest.main(["-p", "no:cacheprovider", "-n0", *sys.argv[1:]]))
