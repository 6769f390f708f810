"""A small flow model of pixels and words."""

import json
import math
from pathlib import Path

import torch
from jaxtyping import Float, Int
from safetensors.torch import load_file, save_file
from torch import Tensor, nn
from torch.nn.functional import scaled_dot_product_attention, silu

from grupo.core.errors import ConfigError, suggest


class SmallFlow(nn.Module):
    """A U-Net of two levels that reads words: velocities of `size` x `size` RGB images.

    Words are read by attention at the lower level, which knows its places; all of them, with the
    time, scale and shift every block.
    """

    KIND = "grupo-small-flow"

    def __init__(self, vocabulary: tuple[str, ...], size: int = 16, width: int = 48) -> None:
        super().__init__()
        self.vocabulary, self.size, self.width, self.max_words = vocabulary, size, width, 12
        told = 2 * width
        self.embed = nn.Embedding(len(vocabulary) + 1, told, padding_idx=0)
        self.position_embedding = nn.Parameter(torch.randn(self.max_words, told) / 10)
        self.word_attention = CrossAttention(told, told)
        asked = (self.max_words + 1) * told
        self.condition_mlp = nn.Sequential(
            nn.Linear(asked, 2 * told), nn.SiLU(), nn.Linear(2 * told, told)
        )
        self.conv_in = nn.Conv2d(3, width, 3, padding=1)
        self.block_in = ConvBlock(width, width, told)
        self.downsample = nn.Conv2d(width, 2 * width, 3, stride=2, padding=1)
        self.spatial_bias = nn.Parameter(torch.randn(2 * width, size // 2, size // 2) / 10)
        self.blocks = nn.ModuleList(ConvBlock(2 * width, 2 * width, told) for _ in range(3))
        self.attention = nn.ModuleList(CrossAttention(2 * width, told) for _ in range(2))
        self.upsample = nn.ConvTranspose2d(2 * width, width, 2, stride=2)
        self.block_out = ConvBlock(2 * width, width, told)
        self.norm_out = nn.Sequential(nn.GroupNorm(8, width), nn.SiLU())
        self.conv_out = nn.Conv2d(width, 3, 3, padding=1)
        nn.init.zeros_(self.conv_out.weight)

    @property
    def shape(self) -> tuple[int, ...]:
        """Of an image."""
        return 3, self.size, self.size

    def tokenize(self, prompt: str) -> list[int]:
        """Numbers of a prompt's words, 0 after the last; refuses a word it does not know."""
        words = prompt.lower().split()
        strange = [word for word in words if word not in self.vocabulary]
        if strange:
            said = f"prompt: {prompt!r} has the word {strange[0]!r}, which the model never read."
            raise ConfigError(f"{said} {suggest(strange[0], self.vocabulary)}")
        if len(words) > self.max_words:
            raise ConfigError(f"prompt: {prompt!r}. Allowed: {self.max_words} words at most.")
        known = [self.vocabulary.index(word) + 1 for word in words]
        return known + [0] * (self.max_words - len(known))

    def forward(
        self, x: Float[Tensor, "m 3 S S"], t: Float[Tensor, "m"], word: Int[Tensor, "m L"]
    ) -> Float[Tensor, "m 3 S S"]:
        """The velocity at x and t."""
        words = self.embed(word) + self.position_embedding
        read = self.word_attention(words, words)
        told = self.condition_mlp(
            torch.cat([read.flatten(1), _sinusoidal_embedding(t, read.shape[-1])], 1)
        )
        high = self.block_in(self.conv_in(x), told)
        low = self.downsample(high) + self.spatial_bias
        for block, attend in zip(self.blocks, self.attention, strict=False):
            low = block(low, told)
            states = low.flatten(2).transpose(1, 2)
            states = attend(states, torch.cat([read, states], 1))
            low = states.transpose(1, 2).reshape(low.shape)
        low = self.blocks[-1](low, told)
        return self.conv_out(
            self.norm_out(self.block_out(torch.cat([high, self.upsample(low)], 1), told))
        )

    def save_pretrained(self, folder: str | Path) -> None:
        """Write config.json and model.safetensors."""
        Path(folder).mkdir(parents=True, exist_ok=True)
        config = {"vocabulary": self.vocabulary, "size": self.size, "width": self.width}
        text = json.dumps({"model_type": self.KIND, **config})
        (Path(folder) / "config.json").write_text(text)
        save_file(self.state_dict(), Path(folder) / "model.safetensors")

    @classmethod
    def from_pretrained(cls, folder: str | Path) -> "SmallFlow":
        """What `save_pretrained` wrote."""
        config = json.loads((Path(folder) / "config.json").read_text())
        model = cls(tuple(config["vocabulary"]), config["size"], config["width"])
        model.load_state_dict(load_file(Path(folder) / "model.safetensors"))
        return model


class ConvBlock(nn.Module):
    """Two convolutions, scaled and shifted by what the block is told, beside a way around them."""

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
    """Attention from some states to others, of four heads, added to the former."""

    def __init__(self, width: int, context_width: int) -> None:
        super().__init__()
        self.norm = nn.LayerNorm(width)
        self.to_q, self.to_kv = nn.Linear(width, width), nn.Linear(context_width, 2 * width)
        self.to_out = nn.Linear(width, width)

    def forward(self, x: Float[Tensor, "m a W"], context: Float[Tensor, "m b V"]) -> Tensor:
        heads = (self.to_q(self.norm(x)), *self.to_kv(context).chunk(2, -1))
        q, k, v = (y.unflatten(-1, (4, -1)).transpose(1, 2) for y in heads)
        return x + self.to_out(scaled_dot_product_attention(q, k, v).transpose(1, 2).flatten(2))


def _sinusoidal_embedding(t: Float[Tensor, "m"], dim: int) -> Float[Tensor, "m W"]:
    """A time as sines and cosines of many lengths."""
    speed = torch.exp(torch.arange(dim // 2, device=t.device) * (-math.log(1e4) / (dim // 2)))
    angle = 1000 * t[:, None] * speed
    return torch.cat([angle.sin(), angle.cos()], 1)
