"""Models that say in which direction noise lies."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

import torch
from jaxtyping import Float
from torch import Tensor, nn

from grupo.core.errors import ConfigError
from grupo.models.flow_matching.diffusers import PipelineBackbone
from grupo.models.flow_matching.unet import SmallFlow
from grupo.models.loading import Lora

Condition = Mapping[str, Tensor]  # what was read of each prompt, a row each


class FlowBackbone(Protocol):
    """A flow model with all that belongs to it."""

    shape: tuple[int, ...]  # of a latent

    @property
    def module(self) -> nn.Module:
        """What is trained: called with latents (m, *shape), times (m,) and the condition."""
        ...

    def timesteps(self, num_steps: int) -> Float[Tensor, "T1"]:
        """When it is asked for its velocity, from 1 down to 0."""
        ...

    def check_prompt(self, prompt: str) -> None:
        """Refuse a prompt that it cannot read."""
        ...

    def encode_prompts(self, prompts: Sequence[str]) -> Condition:
        """What the model is told; the empty prompt tells it nothing."""
        ...

    def decode_latents(self, latents: Float[Tensor, "m ..."]) -> Float[Tensor, "m 3 H W"]:
        """What latents show, 0 to 1."""
        ...

    def save(self, module: Any, folder: Path) -> None:
        """Write a folder that loads as a model with this module."""
        ...


@dataclass(frozen=True)
class VelocityField:
    """Velocities, guided away from what no prompt would give. Ho & Salimans, arXiv:2207.12598.

    v(x, nothing) + guidance (v(x, prompt) - v(x, nothing)).
    """

    backbone: FlowBackbone
    module: nn.Module
    guidance_scale: float

    def __call__(self, x: Tensor, t: Float[Tensor, "m"], condition: Condition) -> Tensor:
        told = self.module(x, t, **condition)
        if self.guidance_scale == 1:
            return told
        nothing = {
            k: v.expand(len(x), *v.shape[1:]) for k, v in self.backbone.encode_prompts([""]).items()
        }
        blind = self.module(x, t, **{k: v.to(x.device) for k, v in nothing.items()})
        return blind + self.guidance_scale * (told - blind)


class SmallFlowBackbone:
    """A model that paints pixels, from a folder that `SmallFlow.save_pretrained` wrote."""

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
    """The model in a folder: one of ours, or a pipeline of diffusers."""
    if (Path(path) / "model_index.json").is_file():
        return PipelineBackbone(path, device)
    config = Path(path) / "config.json"
    if not config.is_file():
        raise ConfigError(f"model: {path!r} has neither model_index.json nor config.json.")
    if json.loads(config.read_text()).get("model_type") != SmallFlow.KIND:
        raise ConfigError(f"model: {path!r} is no {SmallFlow.KIND}, as its config.json has it.")
    return SmallFlowBackbone(path, device)


def add_adapters(module: nn.Module, lora: Lora) -> nn.Module:
    """The module frozen, with trainable adapters."""
    from peft import LoraConfig, get_peft_model

    linear = [name for name, x in module.named_modules() if isinstance(x, nn.Linear)]
    targets = linear if lora.targets == "all-linear" else lora.targets
    config = LoraConfig(
        r=lora.rank,
        lora_alpha=lora.alpha,  # pyright: ignore[reportArgumentType]
        target_modules=targets if isinstance(targets, str) else list(targets),
    )
    try:
        return get_peft_model(module, config)  # pyright: ignore[reportArgumentType]
    except ValueError as error:
        ends = sorted({name.rpartition(".")[2] for name in linear})
        raise ConfigError(
            f"targets: {lora.targets!r}. Allowed: all-linear, {', '.join(ends)}."
        ) from error
