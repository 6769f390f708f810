"""A small flow model of pixels and words."""

import json
import math
from pathlib import Path

import torch
from jaxtyping import Float, Int
from safetensors.torch import load_file, save_file
from torch import Tensor, nn
from torch.nn.functional import scaled_dot_product_attention, silu

from grupo.core.errors import Refused, nearest


class SmallFlow(nn.Module):
    """A U-Net of two levels that reads words: velocities of `size` x `size` RGB images.

    Words are read by attention at the lower level, which knows its places; all of them, with the
    time, scale and shift every block.
    """

    KIND = "grupo-small-flow"

    def __init__(self, vocabulary: tuple[str, ...], size: int = 16, width: int = 48) -> None:
        super().__init__()
        self.vocabulary, self.size, self.width, self.longest = vocabulary, size, width, 12
        told = 2 * width
        self.embed = nn.Embedding(len(vocabulary) + 1, told, padding_idx=0)
        self.place = nn.Parameter(torch.randn(self.longest, told) / 10)
        self.reading = Attending(told, told)
        asked = (self.longest + 1) * told
        self.told = nn.Sequential(nn.Linear(asked, 2 * told), nn.SiLU(), nn.Linear(2 * told, told))
        self.enter = nn.Conv2d(3, width, 3, padding=1)
        self.first = Block(width, width, told)
        self.down = nn.Conv2d(width, 2 * width, 3, stride=2, padding=1)
        self.ground = nn.Parameter(torch.randn(2 * width, size // 2, size // 2) / 10)
        self.blocks = nn.ModuleList(Block(2 * width, 2 * width, told) for _ in range(3))
        self.attending = nn.ModuleList(Attending(2 * width, told) for _ in range(2))
        self.up = nn.ConvTranspose2d(2 * width, width, 2, stride=2)
        self.last = Block(2 * width, width, told)
        self.leave = nn.Sequential(nn.GroupNorm(8, width), nn.SiLU())
        self.out = nn.Conv2d(width, 3, 3, padding=1)
        nn.init.zeros_(self.out.weight)

    @property
    def shape(self) -> tuple[int, ...]:
        """Of an image."""
        return 3, self.size, self.size

    def words(self, prompt: str) -> list[int]:
        """Numbers of a prompt's words, 0 after the last; refuses a word it does not know."""
        words = prompt.lower().split()
        strange = [word for word in words if word not in self.vocabulary]
        if strange:
            said = f"prompt: {prompt!r} has the word {strange[0]!r}, which the model never read."
            raise Refused(f"{said} {nearest(strange[0], self.vocabulary)}")
        if len(words) > self.longest:
            raise Refused(f"prompt: {prompt!r}. Allowed: {self.longest} words at most.")
        known = [self.vocabulary.index(word) + 1 for word in words]
        return known + [0] * (self.longest - len(known))

    def forward(
        self, x: Float[Tensor, "m 3 S S"], t: Float[Tensor, "m"], word: Int[Tensor, "m L"]
    ) -> Float[Tensor, "m 3 S S"]:
        """The velocity at x and t."""
        words = self.embed(word) + self.place
        read = self.reading(words, words)
        told = self.told(torch.cat([read.flatten(1), _waves(t, read.shape[-1])], 1))
        high = self.first(self.enter(x), told)
        low = self.down(high) + self.ground
        for block, attend in zip(self.blocks, self.attending, strict=False):
            low = block(low, told)
            states = low.flatten(2).transpose(1, 2)
            states = attend(states, torch.cat([read, states], 1))
            low = states.transpose(1, 2).reshape(low.shape)
        low = self.blocks[-1](low, told)
        return self.out(self.leave(self.last(torch.cat([high, self.up(low)], 1), told)))

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


class Block(nn.Module):
    """Two convolutions, scaled and shifted by what the block is told, beside a way around them."""

    def __init__(self, before: int, after: int, told: int) -> None:
        super().__init__()
        self.norms = nn.ModuleList([nn.GroupNorm(8, before), nn.GroupNorm(8, after)])
        self.one = nn.Conv2d(before, after, 3, padding=1)
        self.two = nn.Conv2d(after, after, 3, padding=1)
        self.film = nn.Linear(told, 2 * after)
        self.around = nn.Conv2d(before, after, 1) if before != after else nn.Identity()

    def forward(self, x: Tensor, told: Tensor) -> Tensor:
        scale, shift = self.film(told)[..., None, None].chunk(2, 1)
        y = self.one(silu(self.norms[0](x)))
        y = self.two(silu(self.norms[1](y) * (1 + scale) + shift))
        return self.around(x) + y


class Attending(nn.Module):
    """Attention from some states to others, of four heads, added to the former."""

    def __init__(self, width: int, read: int) -> None:
        super().__init__()
        self.norm = nn.LayerNorm(width)
        self.ask, self.say = nn.Linear(width, width), nn.Linear(read, 2 * width)
        self.give = nn.Linear(width, width)

    def forward(self, x: Float[Tensor, "m a W"], to: Float[Tensor, "m b V"]) -> Tensor:
        heads = (self.ask(self.norm(x)), *self.say(to).chunk(2, -1))
        q, k, v = (y.unflatten(-1, (4, -1)).transpose(1, 2) for y in heads)
        return x + self.give(scaled_dot_product_attention(q, k, v).transpose(1, 2).flatten(2))


def _waves(t: Float[Tensor, "m"], width: int) -> Float[Tensor, "m W"]:
    """A time as sines and cosines of many lengths."""
    speed = torch.exp(torch.arange(width // 2, device=t.device) * (-math.log(1e4) / (width // 2)))
    angle = 1000 * t[:, None] * speed
    return torch.cat([angle.sin(), angle.cos()], 1)
