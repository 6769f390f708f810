"""What the tests here share: their kits, a process that trains, and folders in memory."""

from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

from tests.helpers.training_processes import Trainee

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


@pytest.fixture
def cut_short(trainee: Trainee, tmp_path: Path) -> Path:
    """A run killed in its fifth step: checkpoints of steps 2 and 4, four steps in the journals."""
    run = tmp_path / "run"
    assert trainee("train", run, recipe="grpo", kill="step/advantages_computed:5").killed
    saved = {path.name for path in run.glob("checkpoints/step-*")}
    assert saved == {"step-00000002", "step-00000004"}
    return run
