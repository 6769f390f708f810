"""Files of a model that refer to files, models or code elsewhere: none of them is followed."""

import json
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
import torch

from grupo.core.types import Rollout
from grupo.models import loading
from grupo.models.causal_lm import CausalLM
from grupo.models.chat_tokenizer import ChatTokenizer
from grupo.models.flow import Flow
from grupo.models.model_references import check_references
from grupo.models.multimodal.processor_loading import load_processor
from grupo.util.errors import ConfigError
from tests.helpers import tiny_diffusers_pipeline
from tests.helpers.recurrent_model import save_random_model
from tests.helpers.tiny_lm import FAMILIES

CPU = torch.device("cpu")


@pytest.fixture
def model(tmp_path: Path) -> Path:
    """A folder with a model as safetensors."""
    return Path(save_random_model(tmp_path / "model", FAMILIES["llama"]()))


def edit_json(path: Path, **changes: Any) -> None:
    settings = json.loads(path.read_text()) if path.exists() else {}
    path.write_text(json.dumps(settings | changes))


def refusal(model: Path) -> str:
    with pytest.raises(ConfigError) as caught:
        CausalLM(str(model)).build()
    return str(caught.value)


def test_a_model_whose_files_name_only_each_other_loads(model):
    check_references(str(model))
    loading.load(str(model), torch.float32, CPU)


@pytest.mark.parametrize("place", ["../other/model.safetensors", "{tmp}/other/model.safetensors"])
def test_weights_in_another_folder_are_not_read(tmp_path, model, place):
    (tmp_path / "other").mkdir()
    (model / "model.safetensors").rename(tmp_path / "other" / "model.safetensors")
    shard = place.format(tmp=tmp_path)
    names = loading.load_config(str(model)).to_dict()  # any names: none is read
    edit_json(
        model / "model.safetensors.index.json",
        metadata={"total_size": 1},
        weight_map=dict.fromkeys(names, shard),
    )
    assert f"model.safetensors.index.json refers to {shard!r}" in refusal(model)


@pytest.mark.parametrize(
    ("file", "settings", "shown"),
    [
        ("config.json", {"transformers_weights": "../x.safetensors"}, "'../x.safetensors'"),
        ("config.json", {"attn_implementation": "owner/kernel"}, "'owner/kernel'"),
        ("config.json", {"vision": {"_attn_implementation": {"": "a/b:c"}}}, "'a/b:c'"),
        ("config.json", {"experts_implementation": "owner/kernel"}, "'owner/kernel'"),
        ("config.json", {"backbone": "owner/model"}, "'owner/model'"),
        ("tokenizer_config.json", {"vocab_file": "{tmp}/secret"}, "secret"),
        ("tokenizer_config.json", {"tokenizer_file": "{tmp}/secret"}, "secret"),
        ("processor_config.json", {"audio_tokenizer": {"name": "owner/model"}}, "owner/model"),
        ("audio_tokenizer_config.json", {"audio_tokenizer_class": "X"}, "audio_tokenizer_class"),
    ],
)
def test_a_reference_to_something_outside_is_refused(tmp_path, model, file, settings, shown):
    (tmp_path / "secret").write_text("a file of the user")
    edit_json(model / file, **json.loads(json.dumps(settings).replace("{tmp}", str(tmp_path))))
    message = refusal(model)
    assert f"{file} refers to" in message
    assert shown in message


def test_the_path_of_a_tokenizer_on_another_machine_is_no_reference(model):
    edit_json(model / "tokenizer_config.json", vocab_file="/home/author/vocab.txt")
    check_references(str(model))


def test_kinds_of_attention_that_transformers_has_are_no_reference(model):
    edit_json(model / "config.json", attn_implementation="sdpa")
    loading.load(str(model), torch.float32, CPU)


@pytest.mark.parametrize("name", ["AutoConfig", "AutoTokenizer", "AutoProcessor"])
def test_code_in_a_folder_is_neither_executed_nor_offered_for_execution(
    monkeypatch, tmp_path, model, name
):
    questions = []
    monkeypatch.setattr("builtins.input", lambda text: questions.append(text) or "y")
    marker = tmp_path / "executed"
    (model / "own_code.py").write_text(f"open({str(marker)!r}, 'w')\nclass Own: pass\n")
    code = {"auto_map": {name: "own_code.Own"}}
    edit_json(model / "config.json", **code, model_type="own")
    edit_json(model / "tokenizer_config.json", **code, tokenizer_class="Own")
    edit_json(model / "processor_config.json", **code, processor_class="Own")
    for load in (loading.load_config, loading.load_tokenizer, load_processor):
        with suppress(ConfigError, ValueError):
            load(str(model))
    assert (questions, marker.exists()) == ([], False)


def test_a_file_of_weights_without_an_object_is_left_to_its_reader(model):
    (model / "model.safetensors.index.json").write_text("[1]")
    (model / "tokenizer_config.json").write_text("{")
    check_references(str(model))


@pytest.mark.parametrize(
    "template",
    [
        "{% include 'config.json' %}",
        "{% import 'config.json' as other %}",
        "{% extends '/etc/passwd' %}",
        "{{ ().__class__.__base__.__subclasses__() }}",
        "{{ messages.__init__.__globals__ }}",
    ],
)
def test_a_chat_template_reads_no_file_and_reaches_no_code(model, template):
    tokenizer = loading.load_tokenizer(str(model))
    tokenizer.chat_template = template
    chat = ChatTokenizer(tokenizer, (0,), apply_chat_template=True)
    with pytest.raises(ConfigError, match="the chat template rejects messages of user"):
        chat.encode_observation(Rollout(), "Hi")


def pipeline_refusal(path: Path) -> str:
    with pytest.raises(ConfigError) as caught:
        Flow(str(path)).build()
    return str(caught.value)


def test_a_pipeline_takes_no_part_from_another_module_or_folder(tmp_path):
    path = Path(tiny_diffusers_pipeline.save_model(tmp_path / "pipeline"))
    index = path / "model_index.json"
    original = index.read_text()
    edit_json(index, vae=["antigravity", "Own"])
    assert "takes 'vae' from the module 'antigravity'" in pipeline_refusal(path)
    index.write_text(original)
    edit_json(index, **{"../vae": ["diffusers", "AutoencoderKL"]})
    assert "has a part '../vae'" in pipeline_refusal(path)
    index.write_text(original)
    shard = path / "transformer" / "diffusion_pytorch_model.safetensors.index.json"
    edit_json(shard, weight_map={"a": "../../a.safetensors"})
    assert "refers to '../../a.safetensors'" in pipeline_refusal(path)
