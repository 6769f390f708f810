"""What tests of flow models share: `tinyflow`, and a folder with a model."""

import sys
from pathlib import Path

import pytest

sys.path.append(str(Path(__file__).parent))
import tinyflow

from grupo.policies.flow import Flow


@pytest.fixture(scope="session")
def folder(tmp_path_factory: pytest.TempPathFactory) -> str:
    return tinyflow.plant(tmp_path_factory.mktemp("flow") / "tiny")


@pytest.fixture
def flow(folder: str) -> Flow:
    """A model that draws in four steps."""
    return Flow(folder, steps=4)
