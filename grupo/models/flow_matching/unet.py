"""A small text-to-image flow model in pixel space."""

import json
import math
from pathlib import Path

import torch
from jaxtyping import Float, Int
from safetensors.torch import load_file, save_file
from torch import Tensor, nn
from torch.nn.functional import scaled_dot_product_attention, silu

from grupo.util.errors import ConfigError, suggest


class SmallFlow(nn.Module):
    """U-Net of two levels for velocities of `size` x `size` RGB images, conditioned on words.

    The lower level, which has a spatial bias, attends to the words. Words and time together scale
    and shift every convolution block (FiLM).

    Args:
        vocabulary: words that a prompt may have.
        size: height and width of an image, in pixels; even.
        width: channels of the upper level; a multiple of 8.
    """

    KIND = "grupo-small-flow"

    def __init__(self, vocabulary: tuple[str, ...], size: int = 16, width: int = 48) -> None:
        super().__init__()
        self.vocabulary = vocabulary
        self.size = size
        self.width = width
        self.max_words = 12
        condition_size = 2 * width
        self.embed = nn.Embedding(len(vocabulary) + 1, condition_size, padding_idx=0)
        self.position_embedding = nn.Parameter(torch.randn(self.max_words, condition_size) / 10)
        self.word_attention = CrossAttention(condition_size, condition_size)
        words_and_time = (self.max_words + 1) * condition_size
        self.condition_mlp = nn.Sequential(
            nn.Linear(words_and_time, 2 * condition_size),
            nn.SiLU(),
            nn.Linear(2 * condition_size, condition_size),
        )
        self.conv_in = nn.Conv2d(3, width, 3, padding=1)
        self.block_in = ConvBlock(width, width, condition_size)
        self.downsample = nn.Conv2d(width, 2 * width, 3, stride=2, padding=1)
        self.spatial_bias = nn.Parameter(torch.randn(2 * width, size // 2, size // 2) / 10)
        self.blocks = nn.ModuleList(
            ConvBlock(2 * width, 2 * width, condition_size) for _ in range(3)
        )
        self.attention = nn.ModuleList(CrossAttention(2 * width, condition_size) for _ in range(2))
        self.upsample = nn.ConvTranspose2d(2 * width, width, 2, stride=2)
        self.block_out = ConvBlock(2 * width, width, condition_size)
        self.norm_out = nn.Sequential(nn.GroupNorm(8, width), nn.SiLU())
        self.conv_out = nn.Conv2d(width, 3, 3, padding=1)
        nn.init.zeros_(self.conv_out.weight)

    @property
    def shape(self) -> tuple[int, ...]:
        """Shape of an image: channels, height, width."""
        return 3, self.size, self.size

    def tokenize(self, prompt: str) -> list[int]:
        """Indices of a prompt's words, padded with 0; raises `ConfigError` for unknown words."""
        words = prompt.lower().split()
        unknown = [word for word in words if word not in self.vocabulary]
        if unknown:
            raise ConfigError(
                f"prompt: {prompt!r} has the word {unknown[0]!r}, which is not in the vocabulary."
                f" {suggest(unknown[0], self.vocabulary)}"
            )
        if len(words) > self.max_words:
            raise ConfigError(f"prompt: {prompt!r}. Allowed: {self.max_words} words at most.")
        indices = [self.vocabulary.index(word) + 1 for word in words]
        return indices + [0] * (self.max_words - len(indices))

    def forward(
        self, x: Float[Tensor, "m 3 S S"], t: Float[Tensor, "m"], word: Int[Tensor, "m L"]
    ) -> Float[Tensor, "m 3 S S"]:
        """Velocity at images x and times t, for the words of a prompt."""
        embedded = self.embed(word) + self.position_embedding
        words = self.word_attention(embedded, embedded)
        time = _sinusoidal_embedding(t, words.shape[-1])
        condition = self.condition_mlp(torch.cat([words.flatten(1), time], 1))
        high = self.block_in(self.conv_in(x), condition)
        low = self.downsample(high) + self.spatial_bias
        for block, attention in zip(self.blocks, self.attention, strict=False):
            low = block(low, condition)
            states = low.flatten(2).transpose(1, 2)
            states = attention(states, torch.cat([words, states], 1))
            low = states.transpose(1, 2).reshape(low.shape)
        low = self.blocks[-1](low, condition)
        merged = self.block_out(torch.cat([high, self.upsample(low)], 1), condition)
        return self.conv_out(self.norm_out(merged))

    def save_pretrained(self, folder: str | Path) -> None:
        """Write config.json and model.safetensors."""
        Path(folder).mkdir(parents=True, exist_ok=True)
        config = {"vocabulary": self.vocabulary, "size": self.size, "width": self.width}
        text = json.dumps({"model_type": self.KIND, **config})
        (Path(folder) / "config.json").write_text(text)
        save_file(self.state_dict(), Path(folder) / "model.safetensors")

    @classmethod
    def from_pretrained(cls, folder: str | Path) -> "SmallFlow":
        """Load a folder that `save_pretrained` wrote."""
        config = json.loads((Path(folder) / "config.json").read_text())
        model = cls(tuple(config["vocabulary"]), config["size"], config["width"])
        model.load_state_dict(load_file(Path(folder) / "model.safetensors"))
        return model


class ConvBlock(nn.Module):
    """Residual block of two convolutions, scaled and shifted by the condition (FiLM)."""

    def __init__(self, in_channels: int, out_channels: int, condition_size: int) -> None:
        super().__init__()
        self.norms = nn.ModuleList([nn.GroupNorm(8, in_channels), nn.GroupNorm(8, out_channels)])
        self.conv1 = nn.Conv2d(in_channels, out_channels, 3, padding=1)
        self.conv2 = nn.Conv2d(out_channels, out_channels, 3, padding=1)
        self.film = nn.Linear(condition_size, 2 * out_channels)
        self.skip = (
            nn.Conv2d(in_channels, out_channels, 1)
            if in_channels != out_channels
            else nn.Identity()
        )

    def forward(self, x: Tensor, condition: Tensor) -> Tensor:
        scale, shift = self.film(condition)[..., None, None].chunk(2, 1)
        y = self.conv1(silu(self.norms[0](x)))
        y = self.conv2(silu(self.norms[1](y) * (1 + scale) + shift))
        return self.skip(x) + y


class CrossAttention(nn.Module):
    """Residual cross-attention of four heads, from states to context states."""

    def __init__(self, width: int, context_width: int) -> None:
        super().__init__()
        self.norm = nn.LayerNorm(width)
        self.to_q = nn.Linear(width, width)
        self.to_kv = nn.Linear(context_width, 2 * width)
        self.to_out = nn.Linear(width, width)

    def forward(self, x: Float[Tensor, "m a W"], context: Float[Tensor, "m b V"]) -> Tensor:
        projections = (self.to_q(self.norm(x)), *self.to_kv(context).chunk(2, -1))
        q, k, v = (y.unflatten(-1, (4, -1)).transpose(1, 2) for y in projections)
        return x + self.to_out(scaled_dot_product_attention(q, k, v).transpose(1, 2).flatten(2))


def _sinusoidal_embedding(t: Float[Tensor, "m"], dim: int) -> Float[Tensor, "m W"]:
    """Sines and cosines of a time at geometrically spaced frequencies."""
    frequency = torch.exp(torch.arange(dim // 2, device=t.device) * (-math.log(1e4) / (dim // 2)))
    angle = 1000 * t[:, None] * frequency
    return torch.cat([angle.sin(), angle.cos()], 1)
