"""A converted GGUF file is the model that was written into it, and so is its tokenizer."""

import re
import shutil
from pathlib import Path

import gguf
import numpy as np
import pytest
import torch
from gguf import GGMLQuantizationType as Kind
from transformers import AutoModelForCausalLM, AutoTokenizer
from transformers.utils import logging

from grupo.models.causal_lm import CausalLM
from grupo.models.gguf.cache import converted_folder
from grupo.models.model_folder import model_folder
from grupo.util.errors import ConfigError
from tests.helpers.byte_level_bpe import ByteLevelBPE
from tests.helpers.tiny_gguf import CLASSES, END, KV_HEADS, gguf_arrays, tiny_model, write_gguf

TEXTS = (
    "a  12 the<|im_end|> x",
    "ab\n\n 3",
    "1212",
    "the the  the   1",
    "don't \t <|im_start|>user\n",
    "naïve 🙂 e\u0301 漢字",
    "",
)


def logits_of(model) -> torch.Tensor:
    with torch.no_grad():
        return model(torch.arange(3, 40)[None]).logits


def loaded(folder: Path):
    return AutoModelForCausalLM.from_pretrained(folder, attn_implementation="sdpa").eval()


@pytest.mark.parametrize("tied", [True, False])
@pytest.mark.parametrize("architecture", CLASSES)
def test_a_file_in_float32_is_the_model_that_was_written(tmp_path, architecture, tied):
    model = tiny_model(architecture, tied=tied)
    converted = loaded(converted_folder(write_gguf(tmp_path / "x.gguf", model)))
    assert type(converted) is type(model)
    assert torch.equal(logits_of(converted), logits_of(model))


@pytest.mark.parametrize("kind", [Kind.Q4_0, Kind.Q4_1, Kind.Q5_0, Kind.Q8_0, Kind.F16, Kind.BF16])
def test_rounded_weights_are_those_that_gguf_computes(tmp_path, kind):
    model = tiny_model()
    converted = loaded(converted_folder(write_gguf(tmp_path / "x.gguf", model, kind=kind)))
    arrays = gguf_arrays(model)
    rounded = gguf_arrays(converted)
    assert rounded.keys() == arrays.keys()
    for name, values in arrays.items():
        expected = values
        if values.ndim == 2:
            expected = gguf.dequantize(gguf.quantize(values, kind), kind)
            assert 0 < np.abs(expected - values).max() < 0.2
        assert rounded[name].dtype == np.float32
        assert np.array_equal(rounded[name], expected), name


def test_the_rows_of_keys_lie_in_the_order_of_transformers(tmp_path):
    # llama.cpp rotates neighbours, (x0, x1), transformers halves of a head, (x0, x4): of 8 rows it
    # stores the first half at the even places
    model = tiny_model()
    weight = model.get_parameter("model.layers.0.self_attn.k_proj.weight").detach()
    stored = gguf_arrays(model)["blk.0.attn_k.weight"]
    assert len(weight) == KV_HEADS * 8
    assert np.array_equal(stored[:8:2], weight[:4])
    assert np.array_equal(stored[1:8:2], weight[4:8])
    converted = loaded(converted_folder(write_gguf(tmp_path / "x.gguf", model)))
    own = converted.get_parameter("model.layers.0.self_attn.k_proj.weight")
    assert torch.equal(own, weight)


@pytest.mark.parametrize("text", TEXTS)
def test_token_ids_are_those_of_the_vocabulary_and_its_merges(file, text):
    tokenizer = AutoTokenizer.from_pretrained(converted_folder(file))
    ids = tokenizer(text)["input_ids"]
    assert ids == ByteLevelBPE(file)(text)
    assert tokenizer.decode(ids) == text


def test_each_digit_is_a_token_although_a_merge_joins_two(file):
    tokenizer = AutoTokenizer.from_pretrained(converted_folder(file))
    vocabulary = tokenizer.get_vocab()
    assert tokenizer("12")["input_ids"] == [vocabulary["1"], vocabulary["2"]]
    assert "12" in vocabulary


def test_gpt2_joins_digits(tmp_path):
    file = write_gguf(tmp_path / "x.gguf", changes={"tokenizer.ggml.pre": "gpt-2"})
    tokenizer = AutoTokenizer.from_pretrained(converted_folder(file))
    assert tokenizer("12")["input_ids"] == [tokenizer.get_vocab()["12"]]


def test_special_tokens_and_the_chat_template_are_those_of_the_file(file):
    tokenizer = AutoTokenizer.from_pretrained(converted_folder(file))
    assert tokenizer.eos_token_id == END
    messages = [{"role": "user", "content": "a"}]
    text = tokenizer.apply_chat_template(messages, tokenize=False, add_generation_prompt=True)
    assert text == "<|im_start|>user\na<|im_end|>\n<|im_start|>assistant\n"


def test_answers_also_end_with_the_end_of_a_turn(tmp_path):
    changes = {"tokenizer.ggml.eos_token_id": 0, "tokenizer.ggml.eot_token_id": END}
    file = write_gguf(tmp_path / "x.gguf", changes=changes)
    policy = CausalLM(str(file), max_new_tokens=4).build()
    assert policy.chat_tokenizer.eos_token_ids == (0, END)


@pytest.fixture
def verbose_transformers():
    before = logging.get_verbosity(), logging.is_progress_bar_enabled()
    logging.set_verbosity_info()
    logging.enable_progress_bar()
    yield
    logging.set_verbosity(before[0])
    if not before[1]:
        logging.disable_progress_bar()


@pytest.mark.usefixtures("verbose_transformers")
def test_one_line_says_what_is_converted_and_where_to(tmp_path, capfd):
    file = write_gguf(tmp_path / "x.gguf", kind=Kind.Q4_1)
    capfd.readouterr()
    folder = converted_folder(file)
    out, err = capfd.readouterr()
    assert out == ""
    assert re.sub(r"\s+", " ", err).strip() == (
        f"{file} holds weights rounded to 4 bits (Q4_1): it is converted to float32, once, in"
        f" {folder}"
    )
    assert converted_folder(file) == folder
    assert capfd.readouterr() == ("", "")


@pytest.mark.parametrize(
    ("kind", "text"), [(None, "stored as F32"), (Kind.Q8_0, "rounded to 8 bits (Q8_0)")]
)
def test_the_line_names_the_type_of_most_weights(tmp_path, capfd, kind, text):
    converted_folder(write_gguf(tmp_path / "x.gguf", kind=kind))
    assert f"holds weights {text}: it" in re.sub(r"\s+", " ", capfd.readouterr().err)


def test_the_folder_belongs_to_the_contents_of_a_file(tmp_path, file, cache):
    folder = converted_folder(file)
    copy = shutil.copy(file, tmp_path / "copy.GGUF")
    assert model_folder(str(copy)) == str(folder)
    assert folder.parent == cache
    write_gguf(file, tiny_model(seed=1))
    other = converted_folder(file)
    assert other != folder
    assert torch.equal(logits_of(loaded(other)), logits_of(tiny_model(seed=1)))
    assert torch.equal(logits_of(loaded(folder)), logits_of(tiny_model()))


def test_files_beside_the_gguf_file_are_not_read(tmp_path, file):
    alone = loaded(converted_folder(file))
    folder = tmp_path / "full"
    tiny_model(seed=1).save_pretrained(folder)
    for name in ("tokenizer.json", "tokenizer_config.json", "generation_config.json"):
        (folder / name).write_text("[]")
    # another file, so that it is converted anew
    beside = write_gguf(folder / "tiny.gguf", changes={"general.name": "Beside"})
    converted = converted_folder(beside)
    assert torch.equal(logits_of(loaded(converted)), logits_of(alone))
    assert AutoTokenizer.from_pretrained(converted)("a")["input_ids"] == ByteLevelBPE(file)("a")


def test_a_folder_may_have_the_name_of_a_file(tmp_path, file):
    folder = converted_folder(file).rename(tmp_path / "folder.gguf")
    assert model_folder(str(folder)) == str(folder)
    assert CausalLM(str(folder), max_new_tokens=4).build().context_length == 64


def test_other_names_stay_as_they_are(tmp_path):
    for name in ("Qwen/Qwen3-0.6B", str(tmp_path), "gguf", "models/x.gguf/y"):
        assert model_folder(name) == name


def test_without_the_package_the_message_names_the_extra(file, monkeypatch, cache):
    monkeypatch.setitem(__import__("sys").modules, "gguf", None)
    with pytest.raises(ConfigError, match=r"pip install \"grupo\[gguf\]\""):
        converted_folder(file)
    assert not cache.exists()
