"""Fixtures for tests of the native Llama backend."""

from pathlib import Path

import pytest

from grupo.models.causal_lm import CausalPolicy
from tests.helpers import llama_backends


@pytest.fixture(scope="session")
def folders(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """The folder of a model of each supported family."""
    root = tmp_path_factory.mktemp("models")
    return {
        name: llama_backends.save_model(root / name, config())
        for name, config in llama_backends.FAMILIES.items()
    }


@pytest.fixture(params=llama_backends.FAMILIES)
def policy(request: pytest.FixtureRequest, folders: dict[str, Path]) -> CausalPolicy:
    """A policy of every family, new for each test."""
    return llama_backends.policy_of(folders[request.param])


@pytest.fixture(params=llama_backends.FAMILIES)
def float64_policy(request: pytest.FixtureRequest, folders: dict[str, Path]) -> CausalPolicy:
    """A policy of every family with weights in float64, new for each test."""
    return llama_backends.policy_of(folders[request.param], dtype="float64")


@pytest.fixture
def llama(folders: dict[str, Path]) -> CausalPolicy:
    """A policy with a Llama, new for each test."""
    return llama_backends.policy_of(folders["llama"])
