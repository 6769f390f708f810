"""What tests of policies share: `tinylm`, and a folder for each family of models."""

import pytest
import torch

from grupo.kernels import native
from grupo.models.causal_lm import CausalLM
from grupo.models.masked_diffusion import MaskedDiffusion
from tests.helpers import tiny_lm, tiny_masked_lm


@pytest.fixture(scope="session")
def folders(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """Families, and where a model of each lies."""
    root = tmp_path_factory.mktemp("models")
    return {name: str(tiny_lm.plant(root / name, name)) for name in tiny_lm.FAMILIES}


@pytest.fixture
def llama(folders: dict[str, str]) -> CausalLM:
    """A Llama that answers with at most 16 tokens."""
    return CausalLM(folders["llama"], max_new_tokens=16)


@pytest.fixture(scope="session")
def masked_folders(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """Families of bidirectional models, and where one of each lies."""
    root = tmp_path_factory.mktemp("masked")
    return {name: str(tiny_masked_lm.plant(root / name, name)) for name in tiny_masked_lm.FAMILIES}


@pytest.fixture
def bert(masked_folders: dict[str, str]) -> MaskedDiffusion:
    """A BERT that answers with at most 7 tokens."""
    return MaskedDiffusion(masked_folders["bert"], max_new_tokens=7)


@pytest.fixture(params=["in C", "in torch"])
def either_way(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """With a compiler, and without."""
    if request.param == "in torch":
        monkeypatch.setattr(native, "library", lambda dtype: None)
    elif native.library(torch.float64) is None:
        pytest.skip("there is no compiler here")
