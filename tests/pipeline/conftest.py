"""Fixtures of the tests of pipelines: a tiny model, and a process that trains and is killed."""

from pathlib import Path

import pytest

from tests.helpers import training_components
from tests.helpers.training_fixtures import tmp_path, training_process  # noqa: F401


@pytest.fixture(scope="session")
def model(tmp_path_factory: pytest.TempPathFactory) -> str:
    folder: Path = tmp_path_factory.mktemp("models") / "model"
    training_components.save_models(folder)
    return str(folder)
