"""A toy flow model that draws captioned coloured shapes."""

import random
from pathlib import Path

import torch
from jaxtyping import Float
from torch import Tensor

from grupo.core.component import component
from grupo.models.flow_matching.unet import SmallFlow
from grupo.rewards.image_shapes import PALETTE
from grupo.tasks.shape_captions import VOCABULARY, Scene, ShapeSet, all_captions, parse_scene
from grupo.toy.model_dir import model_dir_of

# pixels along an image, and along a shape
IMAGE_SIZE = 16
SHAPE_SIZE = 4
CIRCLE_MASK = torch.tensor([[0, 1, 1, 0], [1, 1, 1, 1], [1, 1, 1, 1], [0, 1, 1, 0]]).bool()
SHAPE_MASKS = {"square": torch.ones(SHAPE_SIZE, SHAPE_SIZE).bool(), "circle": CIRCLE_MASK}
# left, top, right and bottom of the regions of the first and the second set of shapes
REGIONS_BY_SIDE = {
    "": ((0, 0, IMAGE_SIZE, IMAGE_SIZE), (0, 0, IMAGE_SIZE, IMAGE_SIZE)),
    "left of": ((0, 0, 8, IMAGE_SIZE), (8, 0, IMAGE_SIZE, IMAGE_SIZE)),
    "right of": ((8, 0, IMAGE_SIZE, IMAGE_SIZE), (0, 0, 8, IMAGE_SIZE)),
    "above": ((0, 0, IMAGE_SIZE, 8), (0, 8, IMAGE_SIZE, IMAGE_SIZE)),
    "below": ((0, 8, IMAGE_SIZE, IMAGE_SIZE), (0, 0, IMAGE_SIZE, 8)),
}


@component
class ShapesFlow:
    """A U-Net of 0.5 million parameters, trained by flow matching.

    Args:
        width: Channels of the first layer.
        batch_size: Images of a step.
        max_steps: Number of steps.
        learning_rate: Peak learning rate.
        caption_dropout: Probability that a caption is dropped, for classifier-free guidance.
        ema_rate: Rate of the exponential moving average of the weights.
        seed: Seed of weights and training.
        wrong_caption_frac: Fraction of the images that have the caption of another image, so that
            the trained model follows captions loosely.
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
        """The folder of the trained model; equal specifications share it."""
        return model_dir_of(self, "shapes")

    def build_model(self) -> SmallFlow:
        """The untrained model."""
        return SmallFlow(VOCABULARY, IMAGE_SIZE, self.width)

    def example(self, rng: random.Random) -> tuple[str, Float[Tensor, "3 S S"]]:
        """A random caption and an image, with pixels from -1 to 1."""
        caption = drawn_caption = rng.choice(all_captions())
        if self.wrong_caption_frac and rng.random() < self.wrong_caption_frac:
            drawn_caption = rng.choice(all_captions())
        return caption, draw_scene(parse_scene(drawn_caption), rng)


def draw_scene(scene: Scene, rng: random.Random) -> Float[Tensor, "3 S S"]:
    """A random image of the scene, with pixels from -1 to 1; no two shapes touch."""
    while True:  # start over when no place is left for a shape
        occupied = torch.zeros(IMAGE_SIZE + 2, IMAGE_SIZE + 2).bool()
        image = -torch.ones(3, IMAGE_SIZE, IMAGE_SIZE)
        if all(
            _place_shape(image, occupied, shape_set, bounds, rng)
            for shape_set, bounds in zip(scene.shapes, REGIONS_BY_SIDE[scene.side], strict=False)
            for _ in range(shape_set.count)
        ):
            return image


def _place_shape(
    image: Tensor,
    occupied: Tensor,
    shape: ShapeSet,
    bounds: tuple[int, int, int, int],
    rng: random.Random,
) -> bool:
    """Draw one shape at a random free place; False if 20 random places were not free."""
    left, top, right, bottom = bounds
    for _ in range(20):
        x = rng.randint(left, right - SHAPE_SIZE)
        y = rng.randint(top, bottom - SHAPE_SIZE)
        if not occupied[y : y + SHAPE_SIZE + 2, x : x + SHAPE_SIZE + 2].any():
            occupied[y + 1 : y + SHAPE_SIZE + 1, x + 1 : x + SHAPE_SIZE + 1] = True
            region = image[:, y : y + SHAPE_SIZE, x : x + SHAPE_SIZE]
            region[:, SHAPE_MASKS[shape.shape]] = 2 * PALETTE[shape.colour][:, None] - 1
            return True
    return False
