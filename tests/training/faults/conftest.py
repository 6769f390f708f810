"""Fixtures of the fault tests: a training process, a killed run, and folders in memory."""

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


@pytest.fixture
def killed_run(training_process: TrainingProcess, tmp_path: Path) -> Path:
    """A run killed in its fifth step: checkpoints of steps 2 and 4, four steps in the journals."""
    run = tmp_path / "run"
    assert training_process("train", run, recipe="grpo", kill="step/advantages_computed:5").killed
    saved = {path.name for path in run.glob("checkpoints/step-*")}
    assert saved == {"step-00000002", "step-00000004"}
    return run
