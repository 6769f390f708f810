"""The images of rollouts as a PNG grid."""

from collections.abc import Sequence
from pathlib import Path

import torch
from jaxtyping import UInt8
from torch import Tensor
from torch.nn.functional import pad

from grupo.core.types import Rollout
from grupo.rewards.image_shapes import rollout_image
from grupo.util.optional_deps import optional_dependency


def save_image_grid(rows: Sequence[Sequence[Rollout]], file: Path, scale: int = 4) -> None:
    """Write images as a PNG, one row per group, each pixel enlarged `scale` times."""
    with optional_dependency("Pillow", "images"):
        from PIL import Image
    Image.fromarray(tile_images(rows, scale).permute(1, 2, 0).numpy()).save(file, optimize=True)


def tile_images(rows: Sequence[Sequence[Rollout]], scale: int = 1) -> UInt8[Tensor, "3 H W"]:
    """The images side by side with white borders."""
    strips = [torch.cat([_framed_image(rollout, scale) for rollout in row], 2) for row in rows]
    return torch.cat(strips, 1)


def _framed_image(rollout: Rollout, scale: int) -> Tensor:
    image = (rollout_image(rollout) * 255).round().to(torch.uint8)
    large = image.repeat_interleave(scale, 1).repeat_interleave(scale, 2)
    return pad(large, (scale,) * 4, value=255)
