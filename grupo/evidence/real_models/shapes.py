"""Shapes of published language models, from their config files, written down as numbers."""

from collections.abc import Mapping
from typing import Any

from transformers import LlamaConfig, PreTrainedConfig, Qwen2Config, Qwen3Config

QWEN2_VOCAB = 151_936
LLAMA3_VOCAB = 128_256


def _shape(
    hidden: int, layers: int, heads: int, kv_heads: int, intermediate: int, **others: Any
) -> dict[str, Any]:
    return {
        "hidden_size": hidden,
        "num_hidden_layers": layers,
        "num_attention_heads": heads,
        "num_key_value_heads": kv_heads,
        "intermediate_size": intermediate,
        **others,
    }


SHAPES: Mapping[str, PreTrainedConfig] = {
    "Qwen2.5-0.5B": Qwen2Config(
        **_shape(896, 24, 14, 2, 4864, vocab_size=QWEN2_VOCAB),
        tie_word_embeddings=True,
        max_position_embeddings=32_768,
    ),
    "Qwen3-0.6B": Qwen3Config(
        **_shape(1024, 28, 16, 8, 3072, vocab_size=QWEN2_VOCAB, head_dim=128),
        tie_word_embeddings=True,
        max_position_embeddings=40_960,
    ),
    "Qwen2.5-1.5B": Qwen2Config(
        **_shape(1536, 28, 12, 2, 8960, vocab_size=QWEN2_VOCAB),
        tie_word_embeddings=True,
        max_position_embeddings=32_768,
    ),
    "Qwen2.5-3B": Qwen2Config(
        **_shape(2048, 36, 16, 2, 11_008, vocab_size=QWEN2_VOCAB),
        tie_word_embeddings=True,
        max_position_embeddings=32_768,
    ),
    "Llama-3.2-3B": LlamaConfig(
        **_shape(3072, 28, 24, 8, 8192, vocab_size=LLAMA3_VOCAB, head_dim=128),
        tie_word_embeddings=True,
        max_position_embeddings=131_072,
    ),
    "Qwen2.5-7B": Qwen2Config(
        **_shape(3584, 28, 28, 4, 18_944, vocab_size=152_064),
        tie_word_embeddings=False,
        max_position_embeddings=32_768,
    ),
    "Llama-3.1-8B": LlamaConfig(
        **_shape(4096, 32, 32, 8, 14_336, vocab_size=LLAMA3_VOCAB, head_dim=128),
        tie_word_embeddings=False,
        max_position_embeddings=131_072,
    ),
    "Qwen3-8B": Qwen3Config(
        **_shape(4096, 36, 32, 8, 12_288, vocab_size=QWEN2_VOCAB, head_dim=128),
        tie_word_embeddings=False,
        max_position_embeddings=40_960,
    ),
}
