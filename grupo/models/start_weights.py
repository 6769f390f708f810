"""Weights that a policy starts from instead of those in its model's folder."""

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError
from torch import Tensor, nn
from transformers import PreTrainedModel

from grupo.core.component import component
from grupo.models.lora import Lora, add_adapters
from grupo.storage import safetensors
from grupo.storage.atomic_files import sha256_of
from grupo.util.errors import ConfigError


@component
class StartWeights:
    """Trained weights that a policy starts from: those of a run's checkpoint, or peft's adapters.

    Args:
        file: safetensors file of the weights.
        sha256: its checksum; a file with another one is rejected.
        lora: adapters that the file holds. Default: it holds all weights of the model.
        base: weights of the model that the adapters belong to. Default: those in its folder.
    """

    file: str
    sha256: str
    lora: Lora | None = None
    base: "StartWeights | None" = None

    def check(self) -> None:
        """Raise `ConfigError` if the file changed since the recipe was made."""
        if _sha256(self.file) != self.sha256:
            raise ConfigError(
                f"policy.start: {self.file!r} is not the file that the recipe names: its SHA-256"
                " differs. Put back the original, or start a new run."
            )

    def check_lora(self, lora: Lora | None) -> None:
        """Raise `ConfigError` if the adapters in the file cannot be trained as `lora`."""
        if self.lora and lora and lora != self.lora:
            raise ConfigError(
                f"policy.lora: {lora!r}, and the adapters in {self.file!r} are {self.lora!r}."
                " Allowed: these, which trains them further, or None, which merges them into the"
                " model and trains all weights."
            )


def trainable_module(
    model: PreTrainedModel, lora: Lora | None, start: StartWeights | None
) -> nn.Module:
    """The module to train: the model, or the model with adapters, with its start weights.

    Args:
        model: The model as its folder holds it.
        lora: The adapters to train. Default: all weights.
        start: Weights to start from; adapters that `lora` does not train are merged.
    """
    if start and start.base:
        start.base.check()
        _copy_weights(model, start.base)
    if start:
        start.check()
    if start and not start.lora:
        _copy_weights(model, start)
    if not start or not start.lora:
        return add_adapters(model, lora) if lora else model
    module: Any = add_adapters(model, start.lora)
    _copy_weights(module, start)
    if lora:
        return module
    return module.merge_and_unload().requires_grad_(True)


@torch.no_grad()
def _copy_weights(module: nn.Module, start: StartWeights) -> None:
    """Copy weights from a file into the trainable parameters of a module."""
    own = {name: p for name, p in module.named_parameters() if p.requires_grad}
    weights = _read(Path(start.file))
    shapes = {name: tuple(weight.shape) for name, weight in weights.items()}
    if different := {name: tuple(p.shape) for name, p in own.items()}.items() ^ shapes.items():
        name = min(different)[0]
        raise ConfigError(
            f"policy.start: {name!r} in {start.file!r} has shape {shapes.get(name, 'none')}, in"
            f" the model {tuple(own[name].shape) if name in own else 'none'}. Allowed: weights of"
            " the same model."
        )
    for name, parameter in own.items():
        if not weights[name].is_floating_point() or not weights[name].isfinite().all():
            raise ConfigError(
                f"policy.start: {name!r} in {start.file!r} has {weights[name].dtype} entries that"
                " are no weights. Allowed: finite floating-point numbers."
            )
        parameter.copy_(weights[name])


def _read(path: Path) -> Mapping[str, Tensor]:
    """The tensors by their names in the module: peft leaves out the name of the adapter."""
    try:
        tensors = safetensors.load_tensors(path)
    except (OSError, ValueError, SafetensorError) as error:
        raise ConfigError(
            f"policy.start: {str(path)!r} is no safetensors file that loads: {error}. Allowed: an"
            " intact one."
        ) from error
    return {
        re.sub(r"\.(lora_[AB])\.weight$", r".\1.default.weight", name): tensor
        for name, tensor in tensors.items()
    }


def _sha256(file: str) -> str:
    try:
        return sha256_of(Path(file))
    except OSError as error:
        raise ConfigError(
            f"policy.start: {file!r} cannot be read: {error.strerror}. A run needs the weights that"
            " it started from whenever it is resumed."
        ) from error
