"""A small flow model that learns on the spot to write digits, from scikit-learn's."""

import random
from pathlib import Path

from jaxtyping import Float
from torch import Tensor

from grupo.core.component import component
from grupo.models.flow_matching.unet import SmallFlow
from grupo.rewards.image_digits import load_digit_images
from grupo.tasks.digit_captions import DIGIT_NAMES
from grupo.toy.arithmetic_lm import model_dir_of

IMAGE_SIZE = 8  # pixels along an image


@component
class DigitsFlow:
    """A U-Net of a quarter of a million parameters that is taught to write digits."""

    width: int = 24
    batch_size: int = 64
    max_steps: int = 200
    learning_rate: float = 2e-3
    caption_dropout: float = 0.1
    ema_rate: float = 0.02
    seed: int = 0

    @property
    def model_dir(self) -> Path:
        """Where the grown model is kept: equal ones share it."""
        return model_dir_of(self, "digits")

    def build_model(self) -> SmallFlow:
        """The model before it was taught."""
        return SmallFlow(DIGIT_NAMES, IMAGE_SIZE, self.width)

    def example(self, rng: random.Random) -> tuple[str, Float[Tensor, "3 S S"]]:
        """A digit's name and an image of it, grey, -1 to 1."""
        image, digit = load_digit_images()
        number = rng.randrange(len(image))
        return DIGIT_NAMES[int(digit[number])], (2 * image[number] - 1).expand(
            3, IMAGE_SIZE, IMAGE_SIZE
        )
