"""Models that cannot be loaded or trained raise `ConfigError` with a clear message."""

import json
import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from safetensors.torch import load_file, save_file
from transformers import (
    BertConfig,
    BertLMHeadModel,
    Llama4ForCausalLM,
    Llama4TextConfig,
    T5Config,
    T5ForConditionalGeneration,
)

from grupo.core.reference_update import ReferenceUpdate
from grupo.core.types import Task
from grupo.models.base import AuxModel
from grupo.models.causal_lm import CausalLM
from grupo.models.config_file import check_config_file
from grupo.models.lora import Lora
from grupo.util.errors import ConfigError
from tests.helpers.tiny_lm import CONTEXT, save_model, tokenizer


@pytest.fixture
def folder(folders, tmp_path) -> Path:
    """A copy of a model's folder, for a test to break."""
    return Path(shutil.copytree(folders["llama"], tmp_path / "llama"))


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        (
            {"dtype": "bfloat61"},
            "CausalLM.dtype: 'bfloat61'. Allowed: float32 or bfloat16 or float64.",
        ),
        (
            {"device": "cpu0"},
            "device: 'cpu0' is not available. Did you mean 'cpu'? Allowed: auto, cpu",
        ),
        ({"max_new_tokens": 0}, "CausalLM.max_new_tokens: 0. Allowed: 1 or more."),
        (
            {"max_new_tokens": CONTEXT},
            "max_new_tokens: 64. Allowed: below 64, the context length of the model.",
        ),
        ({"tokens_per_microbatch": 0}, "CausalLM.tokens_per_microbatch: 0. Allowed: 1 or more."),
        (
            {"stop_strings": ("",)},
            "CausalLM.stop_strings: ('',). Allowed: not empty.",
        ),
        ({"stop_strings": "END"}, "CausalLM.stop_strings: 'END'. Allowed: a tuple (…,) of which"),
        (
            {"lora": Lora(targets=("q_prj",))},
            "targets: no layer of the model is named 'q_prj'. Did you mean 'q_proj'?",
        ),
    ],
)
def test_invalid_fields_raise_config_errors(llama, changes, message):
    with pytest.raises(ConfigError) as raised:
        replace(llama, **changes).build()
    assert str(raised.value).startswith(message)


def test_longest_answer_that_fits_is_allowed(llama):
    assert replace(llama, max_new_tokens=CONTEXT - 1).build().context_length == CONTEXT


@pytest.mark.parametrize(
    ("config", "problem"),
    [
        ({"num_labels": 10**9}, "num_labels = 1000000000. Allowed: 1 or more, at most 1,000,000"),
        ({"text_config": {"num_labels": 10**6 + 1}}, "num_labels = 1000001. Allowed: 1 or more"),
        ({"hidden_size": 10**9}, "hidden_size = 1000000000. Allowed: 1 or more"),
        ({"num_hidden_layers": 10**9}, "num_hidden_layers = 1000000000. Allowed: 1 or more"),
        ({"vocab_size": 10**9}, "vocab_size = 1000000000. Allowed: 1 or more"),
    ],
)
def test_a_size_in_config_json_that_fills_memory_is_refused(tmp_path, config, problem):
    (tmp_path / "config.json").write_text(json.dumps(config))
    with pytest.raises(ConfigError, match=problem):
        check_config_file(str(tmp_path))


@pytest.mark.parametrize(("field", "value"), [("rank", 0), ("alpha", 0.0)])
def test_invalid_lora_fields_raise_config_errors(field, value):
    with pytest.raises(ConfigError, match=rf"^Lora.{field}: {value}. Allowed: "):
        Lora(**{field: value})


def test_missing_folder_suggests_its_nearest_sibling(folders):
    path = folders["llama"].replace("llama", "lama")
    with pytest.raises(
        ConfigError, match=r"lama' is not a folder. Did you mean 'llama'\? Allowed: "
    ):
        CausalLM(path).build()


def test_relative_path_with_an_existing_parent_is_not_a_hub_name(folders, monkeypatch):
    root = Path(folders["llama"]).parent
    monkeypatch.chdir(root.parent)
    with pytest.raises(ConfigError, match=r"lama' is not a folder. Did you mean 'llama'\?"):
        CausalLM(f"{root.name}/lama").build()


def no_config(folder: Path) -> None:
    (folder / "config.json").unlink()


def no_tokenizer(folder: Path) -> None:
    (folder / "tokenizer.json").unlink()


def no_weights(folder: Path) -> None:
    (folder / "model.safetensors").unlink()


def truncated_weights(folder: Path) -> None:
    with (folder / "model.safetensors").open("r+b") as file:
        file.truncate(5_000)


def broken_header(folder: Path) -> None:
    (folder / "model.safetensors").write_bytes(b"hello")


def broken_config(folder: Path) -> None:
    (folder / "config.json").write_text("{")


def unknown_type(folder: Path) -> None:
    config = json.loads((folder / "config.json").read_text())
    (folder / "config.json").write_text(json.dumps({**config, "model_type": "lama"}))


def encoder_and_decoder(folder: Path) -> None:
    config = T5Config(vocab_size=99, d_model=16, d_kv=4, d_ff=16, num_layers=1, num_heads=2)
    T5ForConditionalGeneration(config).save_pretrained(folder)


def bidirectional(folder: Path) -> None:
    config = BertConfig(
        vocab_size=99,
        hidden_size=16,
        num_hidden_layers=1,
        num_attention_heads=2,
        intermediate_size=16,
        is_decoder=False,
        initializer_range=1.0,
    )
    BertLMHeadModel(config).save_pretrained(folder)


def no_base_model(folder: Path) -> None:
    config = Llama4TextConfig(
        vocab_size=99,
        hidden_size=16,
        intermediate_size=16,
        intermediate_size_mlp=16,
        num_hidden_layers=1,
        num_attention_heads=2,
        num_key_value_heads=1,
        head_dim=8,
        num_local_experts=2,
        eos_token_id=0,
    )
    Llama4ForCausalLM(config).save_pretrained(folder)


def missing_tensor(folder: Path) -> None:
    weights = load_file(folder / "model.safetensors")
    weights.pop("model.layers.1.mlp.up_proj.weight")
    save_file(weights, folder / "model.safetensors", metadata={"format": "pt"})


def wrong_shape(folder: Path) -> None:
    weights = load_file(folder / "model.safetensors")
    weights["lm_head.weight"] = weights["lm_head.weight"][:5].clone()
    save_file(weights, folder / "model.safetensors", metadata={"format": "pt"})


def large_tokenizer(folder: Path) -> None:
    larger = tokenizer()
    larger.add_tokens(["<more>"])
    larger.save_pretrained(folder)


@pytest.mark.parametrize(
    ("damage", "message"),
    [
        (no_config, r"has no config.json; it holds generation_config.json, model.safetensors"),
        (no_tokenizer, r"has no tokenizer that loads: "),
        (no_weights, r"is no causal language model that loads: .*no file named model.safetensors"),
        (
            truncated_weights,
            r"is no causal language model that loads: Error while deserializing header",
        ),
        (broken_header, r"is no causal language model that loads: Error while deserializing heade"),
        (broken_config, r"config.json is no valid JSON: Expecting property name"),
        (unknown_type, r"is no causal language model that loads: .*model type `lama`"),
        (encoder_and_decoder, r"is no causal language model that loads: .*T5Config"),
        (bidirectional, r"BertLMHeadModel is not causal"),
        (no_base_model, r"Llama4ForCausalLM has no base model that runs without the LM head"),
        (missing_tensor, r"lack 1 tensors, first 'model.layers.1.mlp.up_proj.weight'"),
        (wrong_shape, r"'lm_head.weight' in .* has shape \(5, 32\). Allowed: \(99, 32\)"),
        (large_tokenizer, r"has 100 tokens, the model 99"),
    ],
)
def test_incomplete_or_unsupported_folder_raises_config_error(
    folder: Path, damage: Callable[[Path], None], message: str
):
    damage(folder)
    with pytest.raises(ConfigError, match=rf"^model: .*{message}"):
        CausalLM(str(folder), max_new_tokens=8).build()


def test_model_without_end_tokens_raises_config_error(tmp_path):
    folder = save_model(tmp_path, tokenizer_options={"eos_token": None}, eos_token_id=None)
    spec = CausalLM(str(folder), max_new_tokens=8)
    with pytest.raises(
        ConfigError, match=r"^stop_strings: empty, and .* has no end token. Allowed: at least one"
    ):
        spec.build()
    assert replace(spec, stop_strings=("\n",)).build().chat_tokenizer.eos_token_ids == ()


def test_teacher_with_another_vocabulary_raises_config_error(llama, folder):
    config = json.loads((folder / "tokenizer.json").read_text())
    vocabulary = config["model"]["vocab"]
    vocabulary["A"], vocabulary["B"] = vocabulary["B"], vocabulary["A"]
    (folder / "tokenizer.json").write_text(json.dumps(config))
    aux_model = AuxModel("teacher", CausalLM(str(folder), max_new_tokens=16))
    with pytest.raises(
        ConfigError, match="aux_models: 'teacher' has 99 tokens, which differ from the policy"
    ):
        llama.build().attach_aux_models(["logp@teacher"], ReferenceUpdate(), [aux_model])


def test_prompts_must_leave_room_for_the_answer(llama):
    policy = llama.build()
    room = policy.context_length - llama.max_new_tokens
    fits, too_long = Task("fits", "x" * room), Task("long", "x" * (room + 1))
    policy.validate_tasks([fits])
    with pytest.raises(
        ConfigError, match=rf"task long, 'xxx.*', has {room + 1} tokens\. Allowed: {room} tokens,"
    ):
        policy.validate_tasks([fits, too_long])
