"""Fixtures of the fault tests: a training process, a killed run, and folders in memory."""

from pathlib import Path

import pytest

from tests.helpers.training_fixtures import tmp_path, training_process  # noqa: F401
from tests.helpers.training_processes import TrainingProcess


@pytest.fixture
def killed_run(training_process: TrainingProcess, tmp_path: Path) -> Path:  # noqa: F811
    """A run killed in its fifth step: checkpoints of steps 2 and 4, four steps in the journals."""
    run = tmp_path / "run"
    assert training_process("train", run, recipe="grpo", kill="step/advantages_computed:5").killed
    saved = {path.name for path in run.glob("checkpoints/step-*")}
    assert saved == {"step-00000002", "step-00000004"}
    return run
