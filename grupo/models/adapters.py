"""LoRA adapters apart from the model that they change, as peft writes them into files."""

from collections.abc import Mapping
from typing import Any

import torch
from torch import Tensor, nn

PREFIX = "base_model.model."  # of peft, before transformers' names
MATRICES = (".lora_A.", ".lora_B.")
SETTINGS = (
    "r",
    "lora_alpha",
    "use_rslora",
    "rank_pattern",
    "alpha_pattern",
    "use_dora",
    "bias",
    "lora_bias",
    "modules_to_save",
)  # all that decides what the matrices do, besides their names


def adapter_problem(module: nn.Module) -> str:
    """Why the trained weights of a module are more than one adapter of matrices A and B, or ""."""
    adapters = list(_configs(module))
    if len(adapters) != 1:
        return f"the policy has {len(adapters)} adapters"
    trained = (name for name, p in module.named_parameters() if p.requires_grad)
    others = [name for name in trained if not any(matrix in name for matrix in MATRICES)]
    return f"{others[0]} is trained, too" if others else ""


def adapter_settings(module: nn.Module) -> dict[str, Any]:
    """Settings of the adapter, by their names in peft's `adapter_config.json`."""
    (config,) = _configs(module).values()
    values = config.to_dict()
    settings = {name: values[name] for name in SETTINGS if name in values}
    names = {name.rpartition(".")[2] for name in adapted_modules(module)}
    return {**settings, "target_modules": sorted(names)}


def adapted_modules(module: nn.Module) -> list[str]:
    """Names, in the model without adapters, of the modules that have an adapter."""
    tensors = adapter_weights(module)
    return sorted({name.removeprefix(PREFIX).rsplit(".", 2)[0] for name in tensors})


def adapter_weights(module: nn.Module) -> dict[str, Tensor]:
    """The matrices of the adapter by their names in peft's files."""
    (adapter,) = _configs(module)
    return {
        name.replace(f".{adapter}.", "."): parameter.detach()
        for name, parameter in module.named_parameters()
        if any(matrix in name for matrix in MATRICES)
    }


def base_weights(module: nn.Module) -> dict[str, Tensor]:
    """The weights below the adapter, by their names in the model without adapters."""
    return {
        name.removeprefix(PREFIX).replace(".base_layer", ""): tensor
        for name, tensor in module.state_dict().items()
        if not any(matrix in name for matrix in MATRICES)
    }


def copies_of(
    weights: Mapping[str, Tensor], dtype: torch.dtype, device: torch.device
) -> dict[str, Tensor]:
    """Copies on a device; names of tied weights share one.

    Args:
        weights: by name.
        dtype: of copies of floating-point weights.
        device: of the copies.
    """
    copies: dict[tuple[int, torch.Size], Tensor] = {}
    named: dict[str, Tensor] = {}
    for name, x in weights.items():
        key = x.data_ptr(), x.shape
        if key not in copies:
            kind = dtype if x.is_floating_point() else x.dtype
            order = torch.contiguous_format
            copies[key] = x.to(device, kind, copy=True, memory_format=order)
        named[name] = copies[key]
    return named


def _configs(module: nn.Module) -> Mapping[str, Any]:
    """Settings of each adapter, by its name."""
    configs: Any = getattr(module, "peft_config", {})
    return configs
