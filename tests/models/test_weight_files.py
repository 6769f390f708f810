"""Models whose weights are pickles are refused, and nothing in the pickles is executed."""

import json
import os
from pathlib import Path
from typing import Any

import pytest
import torch
from transformers import AutoModelForCausalLM, AutoModelForMaskedLM

from grupo.models.causal_lm import CausalLM
from grupo.models.flow import Flow
from grupo.models.lora import Lora
from grupo.models.masked_diffusion import MaskedDiffusion
from grupo.util.errors import ConfigError
from tests.helpers import tiny_diffusers_pipeline, tiny_masked_lm
from tests.helpers.recurrent_model import save_random_model
from tests.helpers.tiny_lm import FAMILIES


class Canary:
    """A pickle of it creates a folder when it is read."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def __reduce__(self) -> tuple[Any, ...]:
        return os.mkdir, (str(self.folder),)


@pytest.fixture
def model(tmp_path: Path) -> Path:
    """A folder with a model as safetensors."""
    return Path(save_random_model(tmp_path / "model", FAMILIES["llama"]()))


@pytest.fixture
def canary(tmp_path: Path) -> Canary:
    return Canary(tmp_path / "executed")


def pickle_weights(folder: Path, *, replace: bool = True, **more: Any) -> None:
    """Write the weights of a model as a pickle too, with more entries, or only as a pickle."""
    weights = AutoModelForCausalLM.from_pretrained(folder).state_dict()
    torch.save({**weights, **more}, folder / "pytorch_model.bin")
    if replace:
        (folder / "model.safetensors").unlink()


def refusal(spec: Any) -> str:
    with pytest.raises(ConfigError) as caught:
        spec.build()
    return str(caught.value)


def edit_json(path: Path, **changes: Any) -> None:
    path.write_text(json.dumps(json.loads(path.read_text()) | changes))


def test_a_model_that_is_only_a_pickle_is_refused_unread_with_the_way_to_convert_it(model, canary):
    pickle_weights(model, canary=canary)
    assert refusal(CausalLM(str(model), device="cpu")) == (
        f"model: {str(model)!r} would be read from 'pytorch_model.bin', a pickle, which can execute"
        " code. Allowed: safetensors. Convert it once where that is harmless: python -c 'from"
        " transformers import AutoModelForCausalLM as M;"
        f' M.from_pretrained("{model}").save_pretrained("{model}")\'. Or trust its author and write'
        " --policy.allow-pickle True."
    )
    assert not canary.folder.exists()
    torch.load(model / "pytorch_model.bin", weights_only=False)
    assert canary.folder.exists()


def test_a_pickle_beside_safetensors_is_not_read(model, canary):
    pickle_weights(model, replace=False, canary=canary)
    CausalLM(str(model), device="cpu", max_new_tokens=8).build()
    assert not canary.folder.exists()


def test_a_pickle_of_tensors_is_read_if_the_recipe_allows_it(model, canary):
    expected = CausalLM(str(model), device="cpu", max_new_tokens=8).build().weights()
    pickle_weights(model)
    spec = CausalLM(str(model), device="cpu", max_new_tokens=8, allow_pickle=True)
    actual = spec.build().weights()
    assert all(torch.equal(actual[name], x) for name, x in expected.items())


def test_code_in_an_allowed_pickle_is_rejected_by_torch(model, canary):
    pickle_weights(model, canary=canary)
    spec = CausalLM(str(model), device="cpu", max_new_tokens=8, allow_pickle=True)
    assert "is no causal language model that loads" in refusal(spec)
    assert not canary.folder.exists()


def test_the_way_to_convert_a_pickle_works(model):
    expected = CausalLM(str(model), device="cpu", max_new_tokens=8).build().weights()
    pickle_weights(model)
    message = refusal(CausalLM(str(model), device="cpu"))
    program = message.partition("python -c '")[2].partition("'. Or trust")[0]
    exec(program, {})
    actual = CausalLM(str(model), device="cpu", max_new_tokens=8).build().weights()
    assert all(torch.equal(actual[name], x) for name, x in expected.items())


def test_pickled_adapters_beside_a_model_are_refused(model, tmp_path, canary):
    spec = CausalLM(str(model), lora=Lora(2), device="cpu", max_new_tokens=8)
    spec.build().export(tmp_path / "adapters", merge=False)
    for name in ("adapter_config.json", "adapter_model.safetensors"):
        (tmp_path / "adapters" / name).rename(model / name)
    CausalLM(str(model), device="cpu", max_new_tokens=8).build()
    (model / "adapter_model.safetensors").unlink()
    torch.save({"canary": canary}, model / "adapter_model.bin")
    assert "read from 'adapter_model.bin', a pickle" in refusal(CausalLM(str(model), device="cpu"))
    assert not canary.folder.exists()


def test_a_configuration_that_names_a_pickle_is_refused(model):
    edit_json(model / "config.json", transformers_weights="model.safetensors")
    CausalLM(str(model), device="cpu", max_new_tokens=8).build()
    edit_json(model / "config.json", transformers_weights="adapter_model.bin")
    assert "read from 'adapter_model.bin', a pickle" in refusal(CausalLM(str(model), device="cpu"))


def test_an_index_that_names_a_pickle_is_refused(model, canary):
    loaded = AutoModelForCausalLM.from_pretrained(model)
    (model / "model.safetensors").unlink()
    loaded.save_pretrained(model, max_shard_size="20KB")
    CausalLM(str(model), device="cpu", max_new_tokens=8).build()
    index = model / "model.safetensors.index.json"
    files = json.loads(index.read_text())["weight_map"]
    edit_json(index, weight_map={**files, next(iter(files)): "evil.bin"})
    torch.save({"canary": canary}, model / "evil.bin")
    assert "read from 'evil.bin', a pickle" in refusal(CausalLM(str(model), device="cpu"))
    assert not canary.folder.exists()


def test_masked_models_are_read_from_safetensors_only(tmp_path):
    folder = Path(tiny_masked_lm.save_model(tmp_path / "masked"))
    MaskedDiffusion(str(folder), device="cpu", max_new_tokens=8).build()
    weights = AutoModelForMaskedLM.from_pretrained(folder).state_dict()
    torch.save(weights, folder / "pytorch_model.bin")
    (folder / "model.safetensors").unlink()
    spec = MaskedDiffusion(str(folder), device="cpu", max_new_tokens=8)
    assert "import AutoModelForMaskedLM as M" in refusal(spec)


@pytest.mark.filterwarnings("ignore")  # warnings of diffusers and transformers
def test_pipelines_are_read_from_safetensors_only(tmp_path, canary):
    folder = Path(tiny_diffusers_pipeline.save_model(tmp_path / "pipeline"))
    Flow(str(folder), num_steps=3, device="cpu").build()
    weights = folder / "transformer" / "diffusion_pytorch_model.safetensors"
    index = weights.with_suffix(".safetensors.index.json")
    index.write_text(json.dumps({"metadata": {}, "weight_map": {"w": "evil.bin"}}))
    torch.save({"canary": canary}, weights.with_suffix(".bin"))
    assert "read from 'evil.bin', a pickle" in refusal(Flow(str(folder), device="cpu"))
    index.unlink()
    weights.unlink()
    assert "is no Stable Diffusion 3 pipeline" in refusal(Flow(str(folder), device="cpu"))
    assert not canary.folder.exists()
