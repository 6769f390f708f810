"""A small flow model that learns on the spot to draw coloured shapes as captions say."""

import random
from pathlib import Path

import torch
from jaxtyping import Float
from torch import Tensor

from grupo.core.component import piece
from grupo.models.flow_matching.unet import SmallFlow
from grupo.rewards.image_shapes import PALETTE
from grupo.tasks.shape_captions import WORDS, Scene, Things, captions, scene_of
from grupo.toy.arithmetic_lm import home_of

SIZE, THING = 16, 4  # pixels along an image, and along a shape
CIRCLE = torch.tensor([[0, 1, 1, 0], [1, 1, 1, 1], [1, 1, 1, 1], [0, 1, 1, 0]]).bool()
SHAPE = {"square": torch.ones(THING, THING).bool(), "circle": CIRCLE}
HALVES = {  # left, top, right and bottom of where the first things and the others lie
    "": ((0, 0, SIZE, SIZE), (0, 0, SIZE, SIZE)),
    "left of": ((0, 0, 8, SIZE), (8, 0, SIZE, SIZE)),
    "right of": ((8, 0, SIZE, SIZE), (0, 0, 8, SIZE)),
    "above": ((0, 0, SIZE, 8), (0, 8, SIZE, SIZE)),
    "below": ((0, 8, SIZE, SIZE), (0, 0, SIZE, 8)),
}


@piece
class ShapesFlow:
    """A U-Net of half a million parameters that is taught to draw shapes.

    Of the share `loose` of its images the caption is another's, as it often is of pictures found.
    """

    width: int = 32
    batch: int = 64
    steps: int = 700
    lr: float = 2e-3
    blank: float = 0.1
    follow: float = 0.01
    seed: int = 0
    loose: float = 0.0

    @property
    def home(self) -> Path:
        """Where the grown model is kept: equal ones share it."""
        return home_of(self, "shapes")

    def born(self) -> SmallFlow:
        """The model before it was taught."""
        return SmallFlow(WORDS, SIZE, self.width)

    def example(self, rng: random.Random) -> tuple[str, Float[Tensor, "3 S S"]]:
        """A caption and one of its images, -1 to 1."""
        caption = shown = rng.choice(captions())
        if self.loose and rng.random() < self.loose:
            shown = rng.choice(captions())
        return caption, draw(scene_of(shown), rng)


def draw(scene: Scene, rng: random.Random) -> Float[Tensor, "3 S S"]:
    """One of the images that a scene describes, -1 to 1; no two things touch."""
    while True:  # a place that leaves no room for the others is given up
        taken = torch.zeros(SIZE + 2, SIZE + 2).bool()
        image = -torch.ones(3, SIZE, SIZE)
        if all(
            _put(image, taken, things, within, rng)
            for things, within in zip(scene.things, HALVES[scene.side], strict=False)
            for _ in range(things.count)
        ):
            return image


def _put(
    image: Tensor,
    taken: Tensor,
    things: Things,
    within: tuple[int, int, int, int],
    rng: random.Random,
) -> bool:
    """Add one thing where nothing is near; False where no try finds such a place."""
    left, top, right, bottom = within
    for _ in range(20):
        x, y = rng.randint(left, right - THING), rng.randint(top, bottom - THING)
        if not taken[y : y + THING + 2, x : x + THING + 2].any():
            taken[y + 1 : y + THING + 1, x + 1 : x + THING + 1] = True
            place = image[:, y : y + THING, x : x + THING]
            place[:, SHAPE[things.shape]] = 2 * PALETTE[things.colour][:, None] - 1
            return True
    return False
