"""Fixtures of tests that kill training processes: a process, and folders in memory."""

from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

from tests.helpers.training_processes import TrainingProcess

MEMORY = Path("/dev/shm")


@pytest.fixture
def tmp_path() -> Iterator[Path]:
    """A folder in memory if the system has one, so that tests do not wait for a disk."""
    with TemporaryDirectory(dir=MEMORY if MEMORY.is_dir() else None) as folder:
        yield Path(folder)


@pytest.fixture(scope="session")
def training_process() -> Iterator[TrainingProcess]:
    """A process that trains runs on request, with a folder for uninterrupted runs."""
    with TemporaryDirectory(dir=MEMORY if MEMORY.is_dir() else None) as folder:
        process = TrainingProcess(Path(folder))
        yield process
        process.close()
