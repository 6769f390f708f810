"""A small flow model that learns on the spot to draw coloured shapes as captions say."""

import random
from pathlib import Path

import torch
from jaxtyping import Float
from torch import Tensor

from grupo.core.component import component
from grupo.models.flow_matching.unet import SmallFlow
from grupo.rewards.image_shapes import PALETTE
from grupo.tasks.shape_captions import VOCABULARY, Scene, ShapeSet, all_captions, parse_scene
from grupo.toy.arithmetic_lm import model_dir_of

IMAGE_SIZE, SHAPE_SIZE = 16, 4  # pixels along an image, and along a shape
CIRCLE_MASK = torch.tensor([[0, 1, 1, 0], [1, 1, 1, 1], [1, 1, 1, 1], [0, 1, 1, 0]]).bool()
SHAPE_MASKS = {"square": torch.ones(SHAPE_SIZE, SHAPE_SIZE).bool(), "circle": CIRCLE_MASK}
REGIONS_BY_SIDE = {  # left, top, right and bottom of where the first things and the others lie
    "": ((0, 0, IMAGE_SIZE, IMAGE_SIZE), (0, 0, IMAGE_SIZE, IMAGE_SIZE)),
    "left of": ((0, 0, 8, IMAGE_SIZE), (8, 0, IMAGE_SIZE, IMAGE_SIZE)),
    "right of": ((8, 0, IMAGE_SIZE, IMAGE_SIZE), (0, 0, 8, IMAGE_SIZE)),
    "above": ((0, 0, IMAGE_SIZE, 8), (0, 8, IMAGE_SIZE, IMAGE_SIZE)),
    "below": ((0, 8, IMAGE_SIZE, IMAGE_SIZE), (0, 0, IMAGE_SIZE, 8)),
}


@component
class ShapesFlow:
    """A U-Net of half a million parameters that is taught to draw shapes.

    Of the share `wrong_caption_frac` of its images the caption is another's, as it often is of pictures found.
    """

    width: int = 32
    batch_size: int = 64
    max_steps: int = 700
    learning_rate: float = 2e-3
    caption_dropout: float = 0.1
    ema_rate: float = 0.01
    seed: int = 0
    wrong_caption_frac: float = 0.0

    @property
    def model_dir(self) -> Path:
        """Where the grown model is kept: equal ones share it."""
        return model_dir_of(self, "shapes")

    def build_model(self) -> SmallFlow:
        """The model before it was taught."""
        return SmallFlow(VOCABULARY, IMAGE_SIZE, self.width)

    def example(self, rng: random.Random) -> tuple[str, Float[Tensor, "3 S S"]]:
        """A caption and one of its images, -1 to 1."""
        caption = shown = rng.choice(all_captions())
        if self.wrong_caption_frac and rng.random() < self.wrong_caption_frac:
            shown = rng.choice(all_captions())
        return caption, draw_scene(parse_scene(shown), rng)


def draw_scene(scene: Scene, rng: random.Random) -> Float[Tensor, "3 S S"]:
    """One of the images that a scene describes, -1 to 1; no two things touch."""
    while True:  # a place that leaves no room for the others is given up
        taken = torch.zeros(IMAGE_SIZE + 2, IMAGE_SIZE + 2).bool()
        image = -torch.ones(3, IMAGE_SIZE, IMAGE_SIZE)
        if all(
            _place_shape(image, taken, things, within, rng)
            for things, within in zip(scene.shapes, REGIONS_BY_SIDE[scene.side], strict=False)
            for _ in range(things.count)
        ):
            return image


def _place_shape(
    image: Tensor,
    occupied: Tensor,
    shape: ShapeSet,
    bounds: tuple[int, int, int, int],
    rng: random.Random,
) -> bool:
    """Add one thing where nothing is near; False where no try finds such a place."""
    left, top, right, bottom = bounds
    for _ in range(20):
        x, y = rng.randint(left, right - SHAPE_SIZE), rng.randint(top, bottom - SHAPE_SIZE)
        if not occupied[y : y + SHAPE_SIZE + 2, x : x + SHAPE_SIZE + 2].any():
            occupied[y + 1 : y + SHAPE_SIZE + 1, x + 1 : x + SHAPE_SIZE + 1] = True
            place = image[:, y : y + SHAPE_SIZE, x : x + SHAPE_SIZE]
            place[:, SHAPE_MASKS[shape.shape]] = 2 * PALETTE[shape.colour][:, None] - 1
            return True
    return False
