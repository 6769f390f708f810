"""What tests of policies share: `tinylm`, and one folder for each family of models."""

import sys
from pathlib import Path

import pytest

sys.path.append(str(Path(__file__).parent))
import tinylm

from grupo.policies.causal_lm import CausalLM


@pytest.fixture(scope="session")
def folders(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """Families, and where a model of each lies."""
    root = tmp_path_factory.mktemp("models")
    return {name: str(tinylm.plant(root / name, name)) for name in tinylm.FAMILIES}


@pytest.fixture
def llama(folders: dict[str, str]) -> CausalLM:
    """A Llama that answers with at most 16 tokens."""
    return CausalLM(folders["llama"], limit=16)
