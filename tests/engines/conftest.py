"""What tests of engines share with those of policies: `tinylm`, and one Llama."""

import sys
from pathlib import Path

import pytest

sys.path.append(str(Path(__file__).parent))
sys.path.append(str(Path(__file__).parent.with_name("policies")))
import tinylm

from grupo.policies.causal_lm import CausalLM
from grupo.policies.causal_policy import CausalPolicy


@pytest.fixture(scope="session")
def policy(tmp_path_factory: pytest.TempPathFactory) -> CausalPolicy:
    """A Llama that answers with at most 24 tokens."""
    return CausalLM(str(tinylm.plant(tmp_path_factory.mktemp("llama"))), limit=24).build()
