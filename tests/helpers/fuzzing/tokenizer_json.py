"""A small tokenizer.json, and changes of it that make the library of tokenizers panic or hang."""

import copy
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

SPECIAL = {
    "id": 0, "content": "<s>", "single_word": False, "lstrip": False, "rstrip": False,
    "normalized": False, "special": True,
}  # fmt: skip
VALID: Mapping[str, Any] = {
    "version": "1.0",
    "truncation": None,
    "padding": None,
    "added_tokens": [SPECIAL],
    "normalizer": None,
    "pre_tokenizer": {
        "type": "ByteLevel", "add_prefix_space": False, "trim_offsets": True, "use_regex": True,
    },
    "post_processor": None,
    "decoder": {
        "type": "ByteLevel", "add_prefix_space": True, "trim_offsets": True, "use_regex": True,
    },
    "model": {
        "type": "BPE", "dropout": None, "unk_token": None, "continuing_subword_prefix": None,
        "end_of_word_suffix": None, "fuse_unk": False, "byte_fallback": False,
        "ignore_merges": False, "vocab": {"<s>": 0, "a": 1, "b": 2, "ab": 3, "c": 4},
        "merges": [["a", "b"]],
    },
}  # fmt: skip
CONFIG = {
    "model_type": "llama", "architectures": ["LlamaForCausalLM"], "hidden_size": 8,
    "num_hidden_layers": 1, "num_attention_heads": 2, "num_key_value_heads": 2,
    "intermediate_size": 8, "vocab_size": 16, "max_position_embeddings": 32,
}  # fmt: skip
TOKENIZER_CONFIG = {"tokenizer_class": "PreTrainedTokenizerFast", "eos_token": "<s>"}
TEMPLATE = "{% for m in messages %}<{{ m['role'] }}>{{ m['content'] }}{% endfor %}"


def split(pattern: str) -> dict[str, Any]:
    """A pre-tokenizer that splits at a pattern."""
    expression = {"Regex": pattern}
    return {"type": "Split", "pattern": expression, "behavior": "Isolated", "invert": False}


def replace(pattern: Mapping[str, str]) -> dict[str, Any]:
    """A normalizer that replaces a pattern."""
    return {"type": "Replace", "pattern": pattern, "content": "x"}


def template(name: str) -> dict[str, Any]:
    """A post-processor that adds a special token of which it does not know the id."""
    parts = [{"SpecialToken": {"id": name, "type_id": 0}}, {"Sequence": {"id": "A", "type_id": 0}}]
    return {"type": "TemplateProcessing", "single": parts, "pair": [], "special_tokens": {}}


# by name: the path of a part of the file, and what stands there instead
PANICS: Mapping[str, tuple[tuple[str, ...], Any]] = {
    "merge without its result": (("model", "merges"), [["a", "a"]]),
    "merge of itself": (("model", "merges"), [["ab", "ab"]]),
    "prefix of every merge": (("model", "continuing_subword_prefix"), "##"),
    "prefix within a character": (
        ("model",),
        {
            **VALID["model"],
            "continuing_subword_prefix": "#",
            "vocab": {"a": 0, "\u00e9": 1, "a\u00e9": 2},
            "merges": [["a", "\u00e9"]],
        },
    ),
    "ambiguous split": (("pre_tokenizer",), split("(a+)+$")),
    "ambiguous split at a rare character": (("pre_tokenizer",), split("(\u2042+)+$")),
    "ambiguous split at an escape": (("pre_tokenizer",), split(r"(\x{2042}+)+$")),
    "ambiguous replacement": (("normalizer",), replace({"Regex": "(a+)+$"})),
    "recursive pattern": (("pre_tokenizer",), split(r"(?<x>a\g<x>*)b")),
    "replacement of nothing": (("normalizer",), replace({"String": ""})),
    "charsmap": (("normalizer",), {"type": "Precompiled", "precompiled_charsmap": "AAAA"}),
    "pieces of no length": (("pre_tokenizer",), {"type": "FixedLength", "length": 0}),
    "unknown special token": (("post_processor",), template("[X]")),
    "end beyond a token": (
        ("decoder",),
        {"type": "Strip", "content": "a", "start": 10**18, "stop": 10**18},
    ),
}


def changed(path: tuple[str, ...], value: Any) -> dict[str, Any]:
    """The valid file with another value at a path."""
    data = copy.deepcopy(dict(VALID))
    place = data
    for name in path[:-1]:
        place = place[name]
    place[path[-1]] = value
    return data


def write_model(folder: Path, tokenizer: Any, options: Any = None, config: Any = None) -> Path:
    """Write the files of a model without weights.

    Args:
        folder: The folder, which may exist.
        tokenizer: Content of tokenizer.json: bytes, or data.
        options: Content of tokenizer_config.json.
        config: Content of config.json.
    """
    folder.mkdir(exist_ok=True)
    contents = {
        "tokenizer.json": tokenizer,
        "tokenizer_config.json": TOKENIZER_CONFIG if options is None else options,
        "config.json": CONFIG if config is None else config,
    }
    for name, content in contents.items():
        data = content if isinstance(content, bytes) else json.dumps(content).encode()
        (folder / name).write_bytes(data)
    return folder
