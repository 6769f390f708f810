"""Tokenizer files, chat templates and quantization settings of hostile models."""

import json
import tempfile
from pathlib import Path
from typing import Any

from hypothesis import strategies as st

from grupo.core.types import Rollout
from grupo.models.chat_tokenizer import ChatTokenizer
from grupo.models.config_file import check_config_file
from grupo.models.loading import eos_token_ids, load_tokenizer
from grupo.models.quiet_loading import quiet_transformers
from tests.helpers.fuzzing.target import Target, mutated
from tests.helpers.fuzzing.tokenizer_json import (
    CONFIG,
    PANICS,
    TEMPLATE,
    TOKENIZER_CONFIG,
    VALID,
    write_model,
)
from tests.helpers.fuzzing.tokenizer_json import (
    changed as with_part,
)
from tests.helpers.fuzzing.values import changed, json_values

PARTS = tuple(value for _, value in PANICS.values())
MUTATED_PANICS = st.sampled_from(tuple(PANICS.values())).map(lambda part: with_part(*part))
TOKENIZERS_JSON = (
    st.just(VALID)
    | changed(VALID, *PARTS)
    | MUTATED_PANICS
    | mutated(json.dumps(VALID).encode())
    | json_values(*VALID)
)
TEMPLATE_PIECES = (
    *(
        "{% for m in messages %}",
        "{% endfor %}",
        "{{ m.content }}",
        "{{ messages[9].role }}",
        "{{",
        "%}",
    ),
    *(
        "{{ raise_exception('a') }}",
        "{% include 'a' %}",
        "{{ ''.__class__.__mro__ }}",
        "{{ 1 / 0 }}",
    ),
    *(
        "{{ messages | tojson }}",
        "{{ strftime_now('%') }}",
        "{% set x = 10 ** 9 %}",
        "{{ range(9) }}",
    ),
    *(
        "{{ messages.append(1) }}",
        "{{ 'a' | center(100) }}",
        "{% generation %}",
        "{{ [1] | sum('a') }}",
    ),
    *(
        "{{ m['content']['a'] }}",
        "{{ tools[0]['function'] }}",
        "{% macro f() %}{{ f() }}{% endmacro %}",
    ),
    *(
        "{{ f() }}",
        "{{ ns.a.b }}",
        "{{ '\\ud800' }}",
        "{{ 1 | int(base=99) }}",
        "{% break %}",
        "text",
    ),
    *(
        "{{ '%d' | format('a') }}",
        "{{ {}.a.b }}",
        "{{ [][1] }}",
        "{{ 'a' + 1 }}",
        "{{ undefined() }}",
    ),
)
TEMPLATES = st.lists(st.sampled_from(TEMPLATE_PIECES) | st.text(max_size=3), max_size=6).map(
    "".join
)
ADDED = {"0": {"content": "<s>", "special": True}, "9": {"content": "<t>"}}
OPTIONS: dict[str, Any] = {
    **TOKENIZER_CONFIG,
    "chat_template": TEMPLATE,
    "added_tokens_decoder": ADDED,
    "model_max_length": 32,
    "pad_token": "<s>",
    "bos_token": {"content": "<s>", "__type": "AddedToken"},
    "extra_special_tokens": {"image_token": "<i>"},
}
CLASSES = ("LlamaTokenizer", "GPT2Tokenizer", "Qwen2TokenizerFast", "BertTokenizer", "NoTokenizer")
OPTION_FILES = (
    st.just(OPTIONS)
    | changed(OPTIONS, *CLASSES)
    | TEMPLATES.map(lambda text: {**TOKENIZER_CONFIG, "chat_template": text})
    | mutated(json.dumps(OPTIONS).encode())
    | json_values(*OPTIONS)
)
MESSAGES = ({"role": "user", "content": "ab"}, {"role": "tool", "content": "c"})


def _use_tokenizer(files: tuple[Any, Any]) -> object:
    """Load the tokenizer of a folder, and encode a text and messages."""
    with tempfile.TemporaryDirectory() as folder:
        model = write_model(Path(folder, "model"), *files)
        with quiet_transformers():
            tokenizer = load_tokenizer(str(model))
        chat = ChatTokenizer(tokenizer, eos_token_ids(None, tokenizer), apply_chat_template=False)
        tokens = chat.encode_text("ab c\u00e9")
        chat.decode(tokens)
        return chat.encode_observation(Rollout(), MESSAGES)


TOKENIZERS = Target(
    _use_tokenizer,
    st.tuples(TOKENIZERS_JSON, st.just(OPTIONS)) | st.tuples(st.just(VALID), OPTION_FILES),
    cases=450,
    seconds=2.0,
)

SETTINGS: tuple[dict[str, Any], ...] = (
    {"quant_method": "bitsandbytes", "load_in_8bit": True, "llm_int8_threshold": 6.0},
    {"quant_method": "bitsandbytes", "load_in_4bit": True, "bnb_4bit_quant_type": "nf4"},
    {"quant_method": "gptq", "bits": 4, "group_size": 128, "desc_act": False},
    {"quant_method": "awq", "bits": 4, "zero_point": True, "version": "gemm"},
    {"quant_method": "fp8", "activation_scheme": "dynamic", "weight_block_size": [128, 128]},
    {"quant_method": "mxfp4", "modules_to_not_convert": ["a"]},
    {"quant_method": "compressed-tensors", "config_groups": {"a": {"weights": {"num_bits": 8}}}},
)
FIELDS = ("quantization_config", "compression_config")


def _with_settings(choice: tuple[str, Any, bool]) -> dict[str, Any]:
    field, settings, is_nested = choice
    return (
        {**CONFIG, "text_config": {field: settings}} if is_nested else {**CONFIG, field: settings}
    )


def _check_config(config: Any) -> None:
    """Quantized weights are refused, unless they are dequantized while they are loaded."""
    with tempfile.TemporaryDirectory() as folder:
        content = config if isinstance(config, bytes) else json.dumps(config).encode()
        check_config_file(str(write_model(Path(folder, "model"), VALID, config=content)))
    for settings in filter(None, _settings_of(config)):
        assert settings.get("dequantize") is True


def _settings_of(config: Any) -> list[Any]:
    """The settings of a configuration that passed, and of those within it."""
    data = json.loads(config) if isinstance(config, bytes) else config
    inner = [x for x in data.values() if isinstance(x, dict)]
    return [data.get(field) for field in FIELDS] + [x.get(f) for x in inner for f in FIELDS]


QUANTIZATION = Target(
    _check_config,
    st.tuples(
        st.sampled_from(FIELDS),
        st.one_of(*(st.just(settings) | changed(settings) for settings in SETTINGS)),
        st.booleans(),
    ).map(_with_settings)
    | changed({**CONFIG, "quantization_config": SETTINGS[0]})
    | mutated(json.dumps({**CONFIG, "quantization_config": SETTINGS[1]}).encode()),
    cases=750,
)
