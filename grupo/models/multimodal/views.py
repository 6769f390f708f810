"""Other views of a prompt's images, for models that a method compares the policy with.

`AuxModel("masked", prompt_override=MaskedImages())` gives a method `logp@masked`: the
log-probabilities of the same answers under the prompt with masked images.
"""

from abc import abstractmethod
from collections.abc import Mapping
from typing import Any

import numpy as np
from jaxtyping import UInt8

from grupo.core.component import component
from grupo.core.media import Image
from grupo.core.ranges import NonNegativeFloat, PositiveInt, Probability
from grupo.core.types import Group, Observation, Rollout
from grupo.util.rng import derive_key

Pixels = UInt8[np.ndarray, "H W 3"]


class ImageView:
    """A function of a group and a rollout that returns the prompt with changed images.

    The change of an image depends on its content alone, so that all rollouts of a group, every
    update and every rank see the same one.
    """

    def __call__(self, group: Group, rollout: Rollout) -> Observation | None:
        """The changed prompt of the rollout; None if it has no image."""
        prompt = rollout.turns[0][0]
        changed = self.change(prompt)
        return None if changed is prompt else changed

    def change(self, observation: Observation) -> Observation:
        """The observation with changed images; itself if it has none."""
        if isinstance(observation, str):
            return observation
        messages = tuple(map(self._change_message, observation))
        pairs = zip(messages, observation, strict=True)
        return messages if any(new is not old for new, old in pairs) else observation

    def _change_message(self, message: Mapping[str, Any]) -> Mapping[str, Any]:
        content = message.get("content")
        if isinstance(content, str) or not content:
            return message
        parts = [self._change_part(part) for part in content]
        pairs = zip(parts, content, strict=True)
        is_changed = any(new is not old for new, old in pairs)
        return {**message, "content": parts} if is_changed else message

    def _change_part(self, part: Mapping[str, Any]) -> Mapping[str, Any]:
        image = part.get("image")
        if not isinstance(image, Image):
            return part
        rng = np.random.default_rng(derive_key(0, type(self).__name__, image.digest))
        return {**part, "image": Image.from_pixels(self.change_pixels(image.pixels(), rng))}

    @abstractmethod
    def change_pixels(self, pixels: Pixels, rng: np.random.Generator) -> Pixels:
        """The changed image of the same size."""
        ...


@component
class MaskedImages(ImageView):
    """Images of which random patches are black. PAPO, Wang et al., arXiv:2507.06448, section 3.2.

    Args:
        share: share of the patches that are black.
        patch: width and height of a patch, in pixels.
    """

    share: Probability = 0.6
    patch: PositiveInt = 14

    def change_pixels(self, pixels: Pixels, rng: np.random.Generator) -> Pixels:
        """The image with black patches."""
        height, width = pixels.shape[:2]
        rows, columns = -(-height // self.patch), -(-width // self.patch)
        count = round(self.share * rows * columns)
        is_black = np.zeros(rows * columns, dtype=bool)
        is_black[rng.permutation(rows * columns)[:count]] = True
        mask = is_black.reshape(rows, columns).repeat(self.patch, 0).repeat(self.patch, 1)
        return np.where(mask[:height, :width, None], 0, pixels).astype(np.uint8)


@component
class NoisyImages(ImageView):
    """Images with Gaussian noise. NoisyRollout, Liu et al., arXiv:2504.13055, section 3.

    Args:
        level: standard deviation of the noise in units of the range of the pixels; large levels
            leave nothing of the image.
    """

    level: NonNegativeFloat = 0.5

    def change_pixels(self, pixels: Pixels, rng: np.random.Generator) -> Pixels:
        """The image with noise, clipped to the range of pixels."""
        noise = rng.normal(0.0, 255.0 * self.level, pixels.shape)
        return np.clip(np.round(pixels + noise), 0, 255).astype(np.uint8)


@component
class RandomImages(ImageView):
    """Random pixels in place of every image: the view of a blind baseline."""

    def change_pixels(self, pixels: Pixels, rng: np.random.Generator) -> Pixels:
        """Random pixels."""
        return rng.integers(0, 256, pixels.shape, dtype=np.uint8)
