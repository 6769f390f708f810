"""What tests of lean bodies share: `bodies` and `formulas`, and kits of others."""

from pathlib import Path

import pytest

from grupo.models.causal_policy import CausalPolicy
from tests.helpers import llama_backends


@pytest.fixture(scope="session")
def folders(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """Families that lean bodies are of, and where a model of each lies."""
    root = tmp_path_factory.mktemp("models")
    return {
        name: llama_backends.plant(root / name, make())
        for name, make in llama_backends.FAMILIES.items()
    }


@pytest.fixture(params=llama_backends.FAMILIES)
def policy(request: pytest.FixtureRequest, folders: dict[str, Path]) -> CausalPolicy:
    """One of every family, new for each test."""
    return llama_backends.policy_of(folders[request.param])


@pytest.fixture
def llama(folders: dict[str, Path]) -> CausalPolicy:
    """A Llama, new for each test."""
    return llama_backends.policy_of(folders["llama"])
