"""GGUF files of tiny models, written as llama.cpp writes those of published ones."""

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import gguf
import numpy as np
import pytest
import torch
from transformers import (
    LlamaConfig,
    LlamaForCausalLM,
    PreTrainedModel,
    Qwen2Config,
    Qwen2ForCausalLM,
    Qwen3Config,
    Qwen3ForCausalLM,
)

from grupo.models.gguf.cache import converted_folder
from grupo.util.errors import ConfigError
from tests.helpers.byte_level_bpe import BYTE_LETTERS

HEADS, KV_HEADS, LAYERS, HIDDEN = 4, 2, 2, 32
HEAD_SIZES = {"qwen3": 128}  # transformers does not read that of a Qwen3: it has the default
SPECIAL = ("<|endoftext|>", "<|im_start|>", "<|im_end|>")
END = 2
MERGES = ("Ġ a", "1 2", "t h", "th e", "Ġ the", "Ġ Ġ", "a b")  # smollm splits 1 from 2 before
TOKENS = (*SPECIAL, *BYTE_LETTERS.values(), *(merge.replace(" ", "") for merge in MERGES))
CHAT_TEMPLATE = (
    "{% for message in messages %}{{ '<|im_start|>' + message['role'] + '\n' + message['content']"
    " + '<|im_end|>\n' }}{% endfor %}"
    "{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}"
)
CLASSES = {
    "llama": (LlamaConfig, LlamaForCausalLM),
    "qwen2": (Qwen2Config, Qwen2ForCausalLM),
    "qwen3": (Qwen3Config, Qwen3ForCausalLM),
}
# transformers' names, of which each part has another name in llama.cpp
NAMES = {
    "model.embed_tokens": "token_embd",
    "model.norm": "output_norm",
    "lm_head": "output",
    "self_attn.q_proj": "attn_q",
    "self_attn.k_proj": "attn_k",
    "self_attn.v_proj": "attn_v",
    "self_attn.o_proj": "attn_output",
    "self_attn.q_norm": "attn_q_norm",
    "self_attn.k_norm": "attn_k_norm",
    "mlp.gate_proj": "ffn_gate",
    "mlp.up_proj": "ffn_up",
    "mlp.down_proj": "ffn_down",
    "input_layernorm": "attn_norm",
    "post_attention_layernorm": "ffn_norm",
    "model.layers": "blk",
}
Arrays = dict[str, np.ndarray]


def tiny_model(architecture: str = "llama", *, tied: bool = True, seed: int = 0) -> PreTrainedModel:
    """The model whose weights a file holds."""
    torch.manual_seed(seed)
    config_class, model_class = CLASSES[architecture]
    config: Any = config_class(
        vocab_size=len(TOKENS),
        hidden_size=HIDDEN,
        intermediate_size=64,
        num_hidden_layers=LAYERS,
        num_attention_heads=HEADS,
        num_key_value_heads=KV_HEADS,
        head_dim=HEAD_SIZES.get(architecture, HIDDEN // HEADS),
        max_position_embeddings=64,
        initializer_range=0.3,
        tie_word_embeddings=tied,
        bos_token_id=1,
        eos_token_id=END,
        pad_token_id=END,
    )
    return model_class(config).eval()


def gguf_arrays(model: PreTrainedModel) -> Arrays:
    """The weights by llama.cpp's names; of a Llama the rows of queries and keys in its order."""
    arrays = {}
    for name, parameter in model.named_parameters():
        values = parameter.detach().numpy()
        if model.config.model_type == "llama" and ("q_proj" in name or "k_proj" in name):
            heads = HEADS if "q_proj" in name else KV_HEADS
            pairs = values.reshape(heads, 2, len(values) // heads // 2, HIDDEN)
            values = pairs.swapaxes(1, 2).reshape(values.shape)
        for ours, theirs in NAMES.items():
            name = name.replace(ours, theirs)
        arrays[name] = values
    return arrays


def settings() -> dict[str, Any]:
    """The settings of the header of a Llama."""
    return {
        "general.name": "Tiny",
        "general.file_type": 0,
        "llama.block_count": LAYERS,
        "llama.context_length": 64,
        "llama.embedding_length": HIDDEN,
        "llama.feed_forward_length": 64,
        "llama.attention.head_count": HEADS,
        "llama.attention.head_count_kv": KV_HEADS,
        "llama.attention.layer_norm_rms_epsilon": 1e-6,
        "llama.rope.freq_base": 10000.0,
        "llama.rope.dimension_count": HIDDEN // HEADS,
        "llama.vocab_size": len(TOKENS),
        "tokenizer.ggml.model": "gpt2",
        "tokenizer.ggml.pre": "smollm",
        "tokenizer.ggml.tokens": list(TOKENS),
        "tokenizer.ggml.token_type": [3] * len(SPECIAL) + [1] * (len(TOKENS) - len(SPECIAL)),
        "tokenizer.ggml.merges": list(MERGES),
        "tokenizer.ggml.bos_token_id": 1,
        "tokenizer.ggml.eos_token_id": END,
        "tokenizer.ggml.unknown_token_id": 0,
        "tokenizer.ggml.padding_token_id": END,
        "tokenizer.ggml.add_bos_token": False,
        "tokenizer.chat_template": CHAT_TEMPLATE,
    }


def write_gguf(
    path: Path,
    model: PreTrainedModel | None = None,
    *,
    architecture: str = "",
    changes: Mapping[str, Any] | None = None,
    change_arrays: Callable[[Arrays], Arrays] = lambda arrays: arrays,
    kind: gguf.GGMLQuantizationType | None = None,
) -> Path:
    """Write a file.

    Args:
        path: The file.
        model: The model. Default: a tiny Llama.
        architecture: Name of the architecture. Default: that of the model.
        changes: Other settings; None leaves one out.
        change_arrays: Returns other weights.
        kind: Type of the matrices. Default: float32.
    """
    model = model or tiny_model()
    architecture = architecture or model.config.model_type
    writer = gguf.GGUFWriter(path, architecture)
    for name, value in {**settings(), **(changes or {})}.items():
        _add(writer, name.replace("llama.", f"{architecture}."), value)
    for name, values in change_arrays(gguf_arrays(model)).items():
        if kind is not None and values.ndim == 2:
            writer.add_tensor(name, gguf.quantize(values, kind), raw_dtype=kind)
        else:
            writer.add_tensor(name, values)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    return path


def _add(writer: gguf.GGUFWriter, name: str, value: Any) -> None:
    if isinstance(value, bool):
        writer.add_bool(name, value)
    elif isinstance(value, int):
        writer.add_uint32(name, value)
    elif isinstance(value, float):
        writer.add_float32(name, value)
    elif isinstance(value, str):
        writer.add_string(name, value)
    elif value is not None:
        writer.add_array(name, value)


def message_of(file: Path) -> str:
    """The message with which the conversion of a file ends."""
    with pytest.raises(ConfigError) as caught:
        converted_folder(file)
    assert str(caught.value).startswith(f"model: {str(file)!r}")
    return str(caught.value)
