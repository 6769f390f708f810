"""Stable Diffusion 3 pipelines of diffusers as backbones."""

from collections.abc import Sequence
from functools import lru_cache
from pathlib import Path
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor, nn

from grupo.models.quiet_loading import quiet_diffusers
from grupo.models.weight_files import check_pipeline
from grupo.util.errors import ConfigError

TIMESTEP_SCALE = 1000  # transformers of diffusers take times from 0 to this


class TransformerVelocity(nn.Module):
    """A pipeline's transformer, called with latents, times and prompt embeddings."""

    def __init__(self, transformer: nn.Module) -> None:
        super().__init__()
        self.transformer = transformer

    def forward(
        self,
        x: Float[Tensor, "m C H W"],
        t: Float[Tensor, "m"],
        words: Float[Tensor, "m L D"],
        pooled: Float[Tensor, "m E"],
    ) -> Float[Tensor, "m C H W"]:
        """Velocity at latents x and times t, for embeddings of words and of the whole prompt."""
        (velocity,) = self.transformer(
            hidden_states=x,
            timestep=TIMESTEP_SCALE * t,
            encoder_hidden_states=words,
            pooled_projections=pooled,
            return_dict=False,
        )
        return velocity


class PipelineBackbone:
    """A pipeline whose transformer is trained; its text encoders and VAE are frozen."""

    def __init__(self, path: str, device: torch.device) -> None:
        self.pipeline = _pipeline(path).to(device)
        self.device = device
        for name in ("text_encoder", "text_encoder_2", "text_encoder_3", "vae"):
            if getattr(self.pipeline, name) is not None:
                getattr(self.pipeline, name).requires_grad_(False)
        self.module = TransformerVelocity(self.pipeline.transformer.eval())
        config = self.pipeline.transformer.config
        self.shape = (config.in_channels, config.sample_size, config.sample_size)
        self.cached_prompt_embeds = lru_cache(maxsize=1 << 10)(self._encode_prompt)

    def timesteps(self, num_steps: int) -> Float[Tensor, "T1"]:
        self.pipeline.scheduler.set_timesteps(num_steps)
        return self.pipeline.scheduler.sigmas.clone().cpu()

    def check_prompt(self, prompt: str) -> None:
        """Accept every text."""

    def encode_prompts(self, prompts: Sequence[str]) -> dict[str, Tensor]:
        embeddings = [self.cached_prompt_embeds(prompt) for prompt in prompts]
        words, pooled = zip(*embeddings, strict=True) if embeddings else ((), ())
        return {"words": torch.stack(words), "pooled": torch.stack(pooled)}

    @torch.no_grad()
    def decode_latents(self, latents: Float[Tensor, "m C H W"]) -> Float[Tensor, "m 3 H2 W2"]:
        vae = self.pipeline.vae
        unscaled = latents / vae.config.scaling_factor + vae.config.shift_factor
        (image,) = vae.decode(unscaled.to(vae.dtype), return_dict=False)
        return (image.float() / 2 + 0.5).clamp(0, 1)

    def save(self, module: Any, folder: Path) -> None:
        if not isinstance(module, TransformerVelocity):  # adapters without the base model
            module.save_pretrained(folder)
            return
        own = self.pipeline.transformer
        self.pipeline.transformer = module.transformer
        self.pipeline.save_pretrained(folder)
        self.pipeline.transformer = own

    @torch.no_grad()
    def _encode_prompt(self, prompt: str) -> tuple[Tensor, Tensor]:
        """Embeddings of a prompt's words and of the whole prompt, on the CPU."""
        words, _, pooled, _ = self.pipeline.encode_prompt(
            prompt, None, None, do_classifier_free_guidance=False, device=self.device
        )
        return words[0].cpu(), pooled[0].cpu()


def _pipeline(path: str) -> Any:
    """Load a pipeline; the third text encoder may be missing from its folder."""
    try:
        from diffusers.pipelines.stable_diffusion_3.pipeline_stable_diffusion_3 import (
            StableDiffusion3Pipeline,
        )
    except ImportError as error:
        raise ConfigError(
            "model: pipelines need the package diffusers. Install grupo[images]."
        ) from error
    optional = ("text_encoder_3", "tokenizer_3")
    absent = {name: None for name in optional if not (Path(path) / name).is_dir()}
    try:
        check_pipeline(path)
        with quiet_diffusers():
            return StableDiffusion3Pipeline.from_pretrained(path, use_safetensors=True, **absent)
    except ConfigError:
        raise
    except (OSError, ValueError, KeyError) as error:
        reason = str(error).strip().splitlines()[0]
        raise ConfigError(f"model: {path!r} is no Stable Diffusion 3 pipeline: {reason}") from error
