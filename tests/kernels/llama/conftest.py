"""Fixtures for tests of the native Llama backend."""

from pathlib import Path
from typing import Any

import pytest

from grupo.models.causal_policy import CausalPolicy
from tests.helpers import llama_backends
from tests.helpers.adapters import adapted_policy
from tests.helpers.fast_cases import fast_cases


@pytest.fixture(scope="session")
def folders(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """The folder of a model of each supported family."""
    root = tmp_path_factory.mktemp("models")
    return {
        name: llama_backends.save_model(root / name, config())
        for name, config in llama_backends.FAMILIES.items()
    }


ADAPTED = ("qwen2 with adapters", "qwen3 with adapters")
# biases and adapters, norms of queries and keys: a window is in tests/kernels/packing
POLICIES = fast_cases({"qwen3", "qwen2 with adapters"}, (*llama_backends.FAMILIES, *ADAPTED))


@pytest.fixture(params=POLICIES)
def policy(request: pytest.FixtureRequest, folders: dict[str, Path]) -> CausalPolicy:
    """A policy of every family, and of some with adapters, new for each test."""
    return _policy(request.param, folders)


@pytest.fixture(params=POLICIES)
def float64_policy(request: pytest.FixtureRequest, folders: dict[str, Path]) -> CausalPolicy:
    """The same with weights in float64."""
    return _policy(request.param, folders, dtype="float64")


def _policy(name: str, folders: dict[str, Path], **options: Any) -> CausalPolicy:
    make_policy = adapted_policy if name in ADAPTED else llama_backends.policy_of
    return make_policy(folders[name.split()[0]], **options)


@pytest.fixture
def llama(folders: dict[str, Path]) -> CausalPolicy:
    """A policy with a Llama, new for each test."""
    return llama_backends.policy_of(folders["llama"])


@pytest.fixture
def llama_with_adapters(folders: dict[str, Path]) -> CausalPolicy:
    """A policy with a Llama whose adapters are trained, new for each test."""
    return adapted_policy(folders["llama"])
