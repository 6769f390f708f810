"""Pictures that rollouts made, as a PNG; Pillow writes it."""

from collections.abc import Sequence
from pathlib import Path

import torch
from jaxtyping import UInt8
from torch import Tensor
from torch.nn.functional import pad

from grupo.core.types import Rollout
from grupo.report.optional_deps import needed
from grupo.rewards.image_shapes import pixels


def grid(rows: Sequence[Sequence[Rollout]], file: Path, scale: int = 4) -> None:
    """Write the pictures of some rollouts, a row for each group, every pixel `scale` wide."""
    with needed("Pillow", "images"):
        from PIL import Image
    Image.fromarray(tiled(rows, scale).permute(1, 2, 0).numpy()).save(file, optimize=True)


def tiled(rows: Sequence[Sequence[Rollout]], scale: int = 1) -> UInt8[Tensor, "3 H W"]:
    """The pictures side by side, white between them."""
    lines = [torch.cat([_framed(rollout, scale) for rollout in row], 2) for row in rows]
    return torch.cat(lines, 1)


def _framed(rollout: Rollout, scale: int) -> Tensor:
    picture = (pixels(rollout) * 255).round().to(torch.uint8)
    large = picture.repeat_interleave(scale, 1).repeat_interleave(scale, 2)
    return pad(large, (scale,) * 4, value=255)
