"""Fixtures of flow model tests: the folder of a tiny model, and its spec."""

import pytest

from grupo.models.flow import Flow
from tests.helpers import tiny_flow


@pytest.fixture(scope="session")
def folder(tmp_path_factory: pytest.TempPathFactory) -> str:
    return tiny_flow.save_model(tmp_path_factory.mktemp("flow") / "tiny")


@pytest.fixture
def flow(folder: str) -> Flow:
    """A flow model of four denoising steps."""
    return Flow(folder, num_steps=4)
