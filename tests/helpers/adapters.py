"""Models with LoRA adapters that change their outputs."""

import warnings
from pathlib import Path
from typing import Any

import torch
from peft import LoraConfig, get_peft_model
from torch import nn
from transformers import PreTrainedConfig

from grupo.models.causal_policy import CausalPolicy
from grupo.models.lora import Lora
from tests.helpers.llama_backends import model_of, policy_of

RANK = 3
ALPHA = 4.5


def adapted_model(config: PreTrainedConfig, **lora_config: Any) -> Any:
    """A random model with adapters in its layers, without peft's wrapper around it."""
    defaults = {"r": RANK, "lora_alpha": ALPHA, "target_modules": "all-linear"}
    lora = LoraConfig(**{**defaults, **lora_config}, task_type="CAUSAL_LM")
    model = model_of(config)
    with warnings.catch_warnings(action="ignore"):  # peft warns of cases that it handles
        peft_model = get_peft_model(model, lora)
    randomize_lora_b(peft_model)
    return model


def adapted_policy(folder: Path, **options: Any) -> CausalPolicy:
    """A policy that trains adapters, which are no longer fresh."""
    policy = policy_of(folder, **{"lora": Lora(RANK, ALPHA), **options})
    randomize_lora_b(policy.module)
    return policy


@torch.no_grad()
def randomize_lora_b(module: nn.Module) -> None:
    """Make adapters effective: in fresh ones one of both matrices is 0."""
    for name, weight in module.named_parameters():
        if "lora_B" in name or "lora_embedding_A" in name:
            weight.normal_(0, 0.2)
