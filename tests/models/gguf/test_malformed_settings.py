"""Settings of a GGUF file that no model can have end in one `ConfigError`."""

import math
import re

import pytest

from grupo.models.gguf.header import GgufHeader
from grupo.models.gguf.settings import check_settings
from tests.helpers.resource_use import limited_peak
from tests.helpers.tiny_gguf import message_of, write_gguf

NOTHING_BUT_THE_START = re.compile(r"(.* it is converted to float32, once, in .*\n)?")

# other settings of the header, and what the message says
SETTINGS = {
    "an adapter": ({"general.type": "adapter"}, "its general.type is 'adapter'. Allowed: model."),
    "a part": ({"split.count": 3}, "it is one of 3 parts of a model"),
    "no tokens": ({"tokenizer.ggml.tokens": None}, "it has no tokenizer"),
    "no kind of tokenizer": ({"tokenizer.ggml.model": None}, "it has no tokenizer"),
    "an unknown kind of tokenizer": (
        {"tokenizer.ggml.model": "rwkv"},
        "its tokenizer.ggml.model is 'rwkv'",
    ),
    "an unknown split into words": (
        {"tokenizer.ggml.pre": "qwn2"},
        "its tokenizer.ggml.pre is 'qwn2', and how it splits a text into words is not known. Did"
        " you mean 'qwen2'?",
    ),
    "no split into words": ({"tokenizer.ggml.pre": None}, "its tokenizer.ggml.pre is ''"),
    "an end token beyond the vocabulary": (
        {"tokenizer.ggml.eos_token_id": 266},
        "tokenizer.ggml.eos_token_id = 266. Allowed: 0 to 265.",
    ),
    "scaled rotary embeddings": (
        {"llama.rope.scaling.type": "yarn"},
        "its llama.rope.scaling.type is 'yarn', which transformers does not read",
    ),
    "10^9 layers": (
        {"llama.block_count": 10**9},
        "llama.block_count = 1000000000. Allowed: 0 to 10,000.",
    ),
    "more layers than tensors": (
        {"llama.block_count": 10_000},
        "llama.block_count = 10000, and the file has 20 tensors. Allowed: at most one layer for",
    ),
    "an end of a turn beyond the vocabulary": (
        {"tokenizer.ggml.eot_token_id": 2**31},
        "tokenizer.ggml.eot_token_id = 2147483648. Allowed: 0 to 265.",
    ),
    "a token in words": (
        {"tokenizer.ggml.bos_token_id": "a"},
        "tokenizer.ggml.bos_token_id = 'a'. Allowed: 0 to 265.",
    ),
    "no heads": (
        {"llama.attention.head_count": 0},
        "llama.attention.head_count = 0. Allowed: a whole number of 1 or more.",
    ),
    "no heads of keys": (
        {"llama.attention.head_count_kv": 0},
        "llama.attention.head_count_kv = 0. Allowed: a whole number of 1 or more.",
    ),
    "heads that do not divide the width": (
        {"llama.attention.head_count": 3},
        "transformers cannot convert it: The hidden size (32) is not a multiple of the number of",
    ),
    "true as a number of layers": ({"llama.block_count": True}, "llama.block_count = True."),
    "half a position": (
        {"llama.context_length": 2.5},
        "llama.context_length = 2.5. Allowed: a whole number of 1 or more.",
    ),
    "no context": ({"llama.context_length": 0}, "llama.context_length = 0. Allowed: a whole"),
    "merges of one token": (
        {"tokenizer.ggml.merges": ["1 2", "a"]},
        "entry 1 of its tokenizer.ggml.merges is 'a', which is not two tokens with a space",
    ),
    "merges of three tokens": (
        {"tokenizer.ggml.merges": ["a b c"]},
        "entry 0 of its tokenizer.ggml.merges is 'a b c', which is not two tokens",
    ),
    "merges of numbers": (
        {"tokenizer.ggml.merges": [1, 2]},
        "its tokenizer.ggml.merges is no list of texts",
    ),
    "merges of unknown tokens": (
        {"tokenizer.ggml.merges": ["zz qq"]},
        "transformers cannot convert it: Error while initializing BPE: Token `zz` out of voc",
    ),
    "no merges": (
        {"tokenizer.ggml.merges": None},
        "it has neither tokenizer.ggml.merges nor tokenizer.ggml.scores",
    ),
    "tokens of numbers": (
        {"tokenizer.ggml.tokens": [1, 2]},
        "its tokenizer.ggml.tokens is no list of texts",
    ),
    "layers in words": (
        {"llama.block_count": "two"},
        "llama.block_count = 'two'. Allowed: a whole",
    ),
}


@pytest.mark.parametrize("case", SETTINGS)
def test_settings_that_cannot_be_converted_end_in_one_message(tmp_path, cache, capfd, case):
    changes, expected = SETTINGS[case]
    message = message_of(write_gguf(tmp_path / "x.gguf", changes=changes))
    assert expected in message
    assert "Error: " not in message
    assert not cache.exists()
    assert NOTHING_BUT_THE_START.fullmatch("".join(capfd.readouterr()))


FLOATS = ("llama.rope.freq_base", "llama.attention.layer_norm_rms_epsilon", "llama.logit_scale")


@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf])
@pytest.mark.parametrize("setting", FLOATS)
def test_a_setting_that_is_no_finite_number_is_refused(tmp_path, cache, setting, value):
    file = write_gguf(tmp_path / "x.gguf", changes={setting: value})
    assert f"{setting} = {value!r}. Allowed: a finite number." in message_of(file)
    assert not cache.exists()


@pytest.mark.parametrize("value", [0.0, -1.0, 5, "x"])
@pytest.mark.parametrize("setting", FLOATS[:2])
def test_a_base_or_an_epsilon_is_a_number_above_0(tmp_path, cache, setting, value):
    file = write_gguf(tmp_path / "x.gguf", changes={setting: value})
    allowed = "Allowed: a floating-point number above 0."
    assert f"{setting} = {value!r}. {allowed}" in message_of(file)
    assert not cache.exists()


def test_a_model_without_attention_has_no_heads(tmp_path):
    """llama.cpp writes 0 for Mamba."""
    settings = {"mamba.attention.head_count": 0, "mamba.feed_forward_length": 0}
    check_settings(GgufHeader({"general.architecture": "mamba", **settings}, (), 0, 0))


@pytest.mark.parametrize("setting", ["feed_forward_length", "embedding_length", "vocab_size"])
def test_a_model_much_larger_than_the_tensors_is_refused_before_it_is_made(
    tmp_path, cache, setting
):
    file = write_gguf(tmp_path / "x.gguf", changes={f"llama.{setting}": 2**31})
    with limited_peak(2**28):
        message = message_of(file)
    assert "weights, and its tensors have 27,104. Allowed: settings of the model whose" in message
    assert not [*cache.rglob("*.safetensors")]


@pytest.mark.parametrize("name", ["rwkv7", "clip", "llama4", "t5", "qwn2"])
def test_an_unknown_architecture_is_refused_by_name(tmp_path, cache, name):
    message = message_of(write_gguf(tmp_path / "x.gguf", architecture=name))
    assert f"its general.architecture is {name!r}, which transformers does not read" in message
    assert "Allowed: bloom, " in message
    assert ("Did you mean 'qwen2'?" in message) == (name == "qwn2")
    assert not cache.exists()
