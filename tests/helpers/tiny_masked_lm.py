"""Tiny bidirectional language models with random weights."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch
from transformers import (
    AutoModelForMaskedLM,
    BertConfig,
    DistilBertConfig,
    ModernBertConfig,
)

from tests.helpers.tiny_lm import ALPHABET, CONTEXT, tokenizer

MASK = "<mask>"
SIZES = {"vocab_size": len(ALPHABET) + 1, "max_position_embeddings": CONTEXT, "pad_token_id": 0}
WIDE = {
    "hidden_size": 32,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "intermediate_size": 64,
}
FAMILIES: dict[str, Any] = {
    "bert": lambda: BertConfig(**SIZES, **WIDE),
    "distilbert": lambda: DistilBertConfig(**SIZES, dim=32, n_layers=2, n_heads=4, hidden_dim=64),
    "modernbert": lambda: ModernBertConfig(
        **SIZES, **WIDE, eos_token_id=0, bos_token_id=0, cls_token_id=0, sep_token_id=0
    ),
}


def save_model(
    folder: Path, family: str = "bert", size: Mapping[str, int] = {}, **tokenizer_options: Any
) -> Path:
    """Save a random model with peaked distributions, and its tokenizer; `size` is of its config."""
    torch.manual_seed(1)
    config = FAMILIES[family]()
    config.update(size)
    model = AutoModelForMaskedLM.from_config(config)
    with torch.no_grad():
        for parameter in (p for p in model.parameters() if p.ndim > 1):
            parameter.normal_(0, 0.4)
    model.save_pretrained(folder)
    tokenizer(**{"mask_token": MASK, **tokenizer_options}).save_pretrained(folder)
    return folder
