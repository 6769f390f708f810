"""What tests of lean bodies share: `bodies` and `formulas`, and kits of others."""

import sys
from pathlib import Path

import pytest

sys.path.append(str(Path(__file__).parent))
sys.path += [str(Path(__file__).parent.with_name(x)) for x in ("policies", "engines", "packing")]
import bodies

from grupo.policies.causal_policy import CausalPolicy


@pytest.fixture(scope="session")
def folders(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """Families that lean bodies are of, and where a model of each lies."""
    root = tmp_path_factory.mktemp("models")
    return {name: bodies.plant(root / name, make()) for name, make in bodies.FAMILIES.items()}


@pytest.fixture(params=bodies.FAMILIES)
def policy(request: pytest.FixtureRequest, folders: dict[str, Path]) -> CausalPolicy:
    """One of every family, new for each test."""
    return bodies.policy_of(folders[request.param])


@pytest.fixture
def llama(folders: dict[str, Path]) -> CausalPolicy:
    """A Llama, new for each test."""
    return bodies.policy_of(folders["llama"])
