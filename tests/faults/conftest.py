"""What the tests here share: their kits, a process that trains, and folders in memory."""

import sys
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

sys.path.append(str(Path(__file__).parent))
from trainkit import Trainee

MEMORY = Path("/dev/shm")


@pytest.fixture
def tmp_path() -> Iterator[Path]:
    """A folder in memory where the system has such: nothing here waits for a disk."""
    with TemporaryDirectory(dir=MEMORY if MEMORY.is_dir() else None) as folder:
        yield Path(folder)


@pytest.fixture(scope="session")
def trainee() -> Iterator[Trainee]:
    """A process that trains, and its folder of uninterrupted runs."""
    with TemporaryDirectory(dir=MEMORY if MEMORY.is_dir() else None) as folder:
        process = Trainee(Path(folder))
        yield process
        process.close()
