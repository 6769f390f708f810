"""A small flow model that learns on the spot to write digits, from scikit-learn's."""

import random
from pathlib import Path

from jaxtyping import Float
from torch import Tensor

from grupo.core.component import piece
from grupo.models.flow_matching.unet import SmallFlow
from grupo.rewards.image_digits import handwritten
from grupo.tasks.digit_captions import NAMES
from grupo.toy.arithmetic_lm import home_of

SIZE = 8  # pixels along an image


@piece
class DigitsFlow:
    """A U-Net of a quarter of a million parameters that is taught to write digits."""

    width: int = 24
    batch: int = 64
    steps: int = 200
    lr: float = 2e-3
    blank: float = 0.1
    follow: float = 0.02
    seed: int = 0

    @property
    def home(self) -> Path:
        """Where the grown model is kept: equal ones share it."""
        return home_of(self, "digits")

    def born(self) -> SmallFlow:
        """The model before it was taught."""
        return SmallFlow(NAMES, SIZE, self.width)

    def example(self, rng: random.Random) -> tuple[str, Float[Tensor, "3 S S"]]:
        """A digit's name and an image of it, grey, -1 to 1."""
        image, digit = handwritten()
        number = rng.randrange(len(image))
        return NAMES[int(digit[number])], (2 * image[number] - 1).expand(3, SIZE, SIZE)
