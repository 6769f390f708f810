"""What tests of flow models share: `tinyflow`, and a folder with a model."""

import pytest

from grupo.models.flow import Flow
from tests.helpers import tiny_flow


@pytest.fixture(scope="session")
def folder(tmp_path_factory: pytest.TempPathFactory) -> str:
    return tiny_flow.plant(tmp_path_factory.mktemp("flow") / "tiny")


@pytest.fixture
def flow(folder: str) -> Flow:
    """A model that draws in four steps."""
    return Flow(folder, num_steps=4)
