"""Fixtures of policy tests: folders of tiny models by family, and specs of them."""

import pytest
import torch

from grupo.kernels import native
from grupo.models.causal_lm import CausalLM
from grupo.models.masked_diffusion import MaskedDiffusion
from tests.helpers import tiny_lm, tiny_masked_lm, vision_families


@pytest.fixture(scope="session")
def folders(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """Folder of a model of each family."""
    root = tmp_path_factory.mktemp("models")
    return {name: str(tiny_lm.save_model(root / name, name)) for name in tiny_lm.FAMILIES}


@pytest.fixture(scope="session")
def vision_folders(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """Folder of a multimodal model of each family."""
    root = tmp_path_factory.mktemp("multimodal")
    families = vision_families.FAMILIES
    return {name: str(vision_families.save_model(root / name, name)) for name in families}


@pytest.fixture
def llama(folders: dict[str, str]) -> CausalLM:
    """A Llama with answers of at most 16 tokens."""
    return CausalLM(folders["llama"], max_new_tokens=16)


@pytest.fixture(scope="session")
def masked_folders(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """Folder of a bidirectional model of each family."""
    root = tmp_path_factory.mktemp("masked")
    return {
        name: str(tiny_masked_lm.save_model(root / name, name)) for name in tiny_masked_lm.FAMILIES
    }


@pytest.fixture
def bert(masked_folders: dict[str, str]) -> MaskedDiffusion:
    """A BERT with answers of at most 7 tokens."""
    return MaskedDiffusion(masked_folders["bert"], max_new_tokens=7)


@pytest.fixture(params=["c", "torch"])
def with_and_without_compiler(
    request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Run a test with the C kernels and without them."""
    if request.param == "torch":
        monkeypatch.setattr(native, "library", lambda dtype: None)
    elif native.library(torch.float64) is None:
        pytest.skip("there is no compiler here")
