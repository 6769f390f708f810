"""Models with a recurrent state in place of attention to every token; random models."""

from pathlib import Path
from typing import Any

import torch
from transformers import AutoModelForCausalLM, Lfm2Config, MambaConfig, PreTrainedConfig

from tests.helpers import tiny_lm
from tests.helpers.tiny_lm import ENDS, WIDE

RECURRENT: dict[str, Any] = {
    "mamba": lambda: MambaConfig(hidden_size=32, num_hidden_layers=2, state_size=8, **ENDS),
    "lfm2": lambda: Lfm2Config(**WIDE, **ENDS, layer_types=["conv", "full_attention"]),
}


def random_model(config: PreTrainedConfig) -> Any:
    """A randomly initialised model with peaked distributions."""
    torch.manual_seed(1)
    model = AutoModelForCausalLM.from_config(config).eval()
    with torch.no_grad():
        for parameter in (p for p in model.parameters() if p.ndim > 1):
            parameter.normal_(0, 0.4)
    return model


def save_random_model(folder: Path, config: PreTrainedConfig) -> str:
    """Saves such a model with the tokenizer of all tiny models; returns the folder."""
    random_model(config).save_pretrained(folder)
    tiny_lm.tokenizer().save_pretrained(folder)
    return str(folder)
