"""Backbones of flow models: velocity networks with their prompt encoder and image decoder."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

import torch
from jaxtyping import Float
from torch import Tensor, nn

from grupo.models.config_file import check_model_name
from grupo.models.flow_matching.diffusers import PipelineBackbone
from grupo.models.flow_matching.unet import SmallFlow
from grupo.models.loading import PIPELINE_INDEX
from grupo.models.lora import ALL_LINEAR, Lora, target_modules
from grupo.util.errors import ConfigError

Condition = Mapping[str, Tensor]  # encoded prompts by keyword of the module, one row each


class FlowBackbone(Protocol):
    """A velocity network with its times, prompt encoder and image decoder."""

    @property
    def shape(self) -> tuple[int, ...]:
        """The shape of one latent."""
        ...

    @property
    def module(self) -> nn.Module:
        """The trained network: velocities of latents (m, *shape), times (m,) and conditions."""
        ...

    def timesteps(self, num_steps: int) -> Float[Tensor, "T1"]:
        """Times of the steps, from 1 (noise) to 0 (image), `num_steps` + 1 of them."""
        ...

    def check_prompt(self, prompt: str) -> None:
        """Raise `ConfigError` for a prompt that cannot be encoded."""
        ...

    def encode_prompts(self, prompts: Sequence[str]) -> Condition:
        """Conditions of the prompts; the empty prompt is the unconditional one."""
        ...

    def decode_latents(self, latents: Float[Tensor, "m ..."]) -> Float[Tensor, "m 3 H W"]:
        """RGB images of latents, with values from 0 to 1."""
        ...

    def save(self, module: Any, folder: Path) -> None:
        """Write a folder that loads as this backbone with `module` as its network."""
        ...


@dataclass(frozen=True)
class VelocityField:
    """Velocities under classifier-free guidance. Ho & Salimans, arXiv:2207.12598.

    v(x, "") + guidance_scale (v(x, prompt) - v(x, "")).

    Args:
        backbone: encodes the empty prompt.
        module: the velocity network.
        guidance_scale: 1 is no guidance, and one forward pass instead of two.
    """

    backbone: FlowBackbone
    module: nn.Module
    guidance_scale: float

    def __call__(self, x: Tensor, t: Float[Tensor, "m"], condition: Condition) -> Tensor:
        conditional = self.module(x, t, **condition)
        if self.guidance_scale == 1:
            return conditional
        empty = {
            name: value.expand(len(x), *value.shape[1:]).to(x.device)
            for name, value in self.backbone.encode_prompts([""]).items()
        }
        unconditional = self.module(x, t, **empty)
        return unconditional + self.guidance_scale * (conditional - unconditional)


class SmallFlowBackbone:
    """A `SmallFlow` in pixel space, from a folder of `SmallFlow.save_pretrained`."""

    def __init__(self, path: str, device: torch.device) -> None:
        self.module = SmallFlow.from_pretrained(path).to(device)
        self.shape = self.module.shape

    def timesteps(self, num_steps: int) -> Float[Tensor, "T1"]:
        return torch.linspace(1, 0, num_steps + 1)

    def check_prompt(self, prompt: str) -> None:
        self.module.tokenize(prompt)

    def encode_prompts(self, prompts: Sequence[str]) -> Condition:
        return {"word": torch.tensor([self.module.tokenize(prompt) for prompt in prompts])}

    def decode_latents(self, latents: Tensor) -> Tensor:
        return (latents / 2 + 0.5).clamp(0, 1)

    def save(self, module: Any, folder: Path) -> None:
        module.save_pretrained(folder)


def load(path: str, device: torch.device) -> FlowBackbone:
    """The backbone in a folder: a `SmallFlow`, or a pipeline of diffusers."""
    check_model_name(path)
    if (Path(path) / PIPELINE_INDEX).is_file():
        return PipelineBackbone(path, device)
    config = Path(path) / "config.json"
    if not config.is_file():
        raise ConfigError(f"model: {path!r} has neither {PIPELINE_INDEX} nor config.json.")
    if json.loads(config.read_text()).get("model_type") != SmallFlow.KIND:
        raise ConfigError(f"model: {path!r} is no {SmallFlow.KIND}, according to its config.json.")
    return SmallFlowBackbone(path, device)


def add_adapters(module: nn.Module, lora: Lora) -> nn.Module:
    """The module with trainable adapters; its own weights are frozen."""
    from peft import LoraConfig, get_peft_model

    linear = [name for name, x in module.named_modules() if isinstance(x, nn.Linear)]
    names = [name for name, _ in module.named_modules()]
    targets = linear if lora.targets == ALL_LINEAR else target_modules(names, lora.targets)
    config = LoraConfig(
        r=lora.rank,
        lora_alpha=lora.alpha,  # pyrefly: ignore[bad-argument-type]  # a float is allowed
        target_modules=targets,
    )
    try:
        return get_peft_model(module, config)
    except ValueError as error:
        layers = sorted({name.rpartition(".")[2] for name in linear})
        raise ConfigError(
            f"targets: {lora.targets!r}. Allowed: all-linear, {', '.join(layers)}."
        ) from error
