"""A toy flow model that generates digits, trained on scikit-learn's handwritten ones."""

import random
from pathlib import Path

from jaxtyping import Float
from torch import Tensor

from grupo.core.component import component
from grupo.models.flow_matching.unet import SmallFlow
from grupo.rewards.image_digits import load_digit_images
from grupo.tasks.digit_captions import DIGIT_NAMES
from grupo.toy.model_dir import model_dir_of

IMAGE_SIZE = 8  # pixels along an image


@component
class DigitsFlow:
    """A U-Net of 0.25 million parameters, trained by flow matching.

    Args:
        width: Channels of the first layer.
        batch_size: Images of a step.
        max_steps: Number of steps.
        learning_rate: Peak learning rate.
        caption_dropout: Probability that a caption is dropped, for classifier-free guidance.
        ema_rate: Rate of the exponential moving average of the weights.
        seed: Seed of weights and training.
    """

    width: int = 24
    batch_size: int = 64
    max_steps: int = 200
    learning_rate: float = 2e-3
    caption_dropout: float = 0.1
    ema_rate: float = 0.02
    seed: int = 0

    @property
    def model_dir(self) -> Path:
        """The folder of the trained model; equal specifications share it."""
        return model_dir_of(self, "digits")

    def build_model(self) -> SmallFlow:
        """The untrained model."""
        return SmallFlow(DIGIT_NAMES, IMAGE_SIZE, self.width)

    def example(self, rng: random.Random) -> tuple[str, Float[Tensor, "3 S S"]]:
        """A random image in grey, with pixels from -1 to 1, and its digit's name."""
        image, digit = load_digit_images()
        index = rng.randrange(len(image))
        pixels = (2 * image[index] - 1).expand(3, IMAGE_SIZE, IMAGE_SIZE)
        return DIGIT_NAMES[int(digit[index])], pixels
