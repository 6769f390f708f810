"""The policy of the engine tests."""

import pytest

from grupo.models.causal_lm import CausalLM
from grupo.models.causal_policy import CausalPolicy
from tests.helpers import tiny_lm


@pytest.fixture(scope="session")
def policy(tmp_path_factory: pytest.TempPathFactory) -> CausalPolicy:
    """A Llama with answers of at most 24 tokens."""
    return CausalLM(
        str(tiny_lm.save_model(tmp_path_factory.mktemp("llama"))), max_new_tokens=24
    ).build()
