"""Other views of the images of a prompt."""

import numpy as np
import pytest

from grupo.core.media import Image, media_of
from grupo.core.types import Group, Response, Rollout, Task
from grupo.models.multimodal.views import MaskedImages, NoisyImages, RandomImages

PIXELS = np.full((28, 42, 3), 200, dtype=np.uint8)


def prompt(pixels: np.ndarray = PIXELS) -> tuple[dict, ...]:
    content = [{"type": "image", "image": Image.from_pixels(pixels)}, {"type": "text", "text": "?"}]
    return ({"role": "system", "content": "Look."}, {"role": "user", "content": content})


def changed_pixels(view, pixels: np.ndarray = PIXELS) -> np.ndarray:
    rollout = Rollout().append_turn(prompt(pixels), Response((1,), (0.0,)))
    observation = view(Group(Task("key", prompt(pixels)), (rollout,)), rollout)
    (image,) = media_of(observation)
    assert observation[0] == {"role": "system", "content": "Look."}
    assert observation[1]["content"][1] == {"type": "text", "text": "?"}
    assert isinstance(image, Image)
    return image.pixels()


def test_half_of_six_patches_are_black():
    patches = changed_pixels(MaskedImages(0.5, patch=14)).reshape(2, 14, 3, 14, 3)
    values = {(i, j): set(patches[i, :, j].ravel().tolist()) for i in range(2) for j in range(3)}
    assert sorted(map(max, values.values())) == [0, 0, 0, 200, 200, 200]
    assert all(len(value) == 1 for value in values.values())


@pytest.mark.parametrize(("share", "black"), [(0.0, 0.0), (1.0, 1.0)])
def test_no_patch_or_all_patches_are_black(share, black):
    assert (changed_pixels(MaskedImages(share)) == 0).mean() == black


def test_the_last_patches_of_a_size_that_is_no_multiple_are_cut():
    pixels = np.full((15, 15, 3), 9, dtype=np.uint8)
    assert changed_pixels(MaskedImages(0.5), pixels).shape == (15, 15, 3)


def test_noise_has_the_given_deviation():
    pixels = np.full((100, 100, 3), 128, dtype=np.uint8)
    noise = changed_pixels(NoisyImages(0.1), pixels).astype(float) - 128
    assert abs(noise.std() - 25.5) < 0.5
    assert abs(noise.mean()) < 0.5


def test_random_pixels_have_nothing_of_the_image():
    dark, bright = (np.full((64, 64, 3), x, dtype=np.uint8) for x in (0, 255))
    means = [changed_pixels(RandomImages(), x).mean() for x in (dark, bright)]
    assert all(abs(mean - 127.5) < 3 for mean in means)


@pytest.mark.parametrize("view", [MaskedImages(), NoisyImages(), RandomImages()])
def test_the_same_image_has_the_same_view(view):
    assert (changed_pixels(view) == changed_pixels(view)).all()


def test_a_prompt_without_images_has_no_other_view():
    rollout = Rollout().append_turn("text", Response((1,), (0.0,)))
    assert MaskedImages()(Group(Task("key", "text"), (rollout,)), rollout) is None
    chat = ({"role": "user", "content": "text"},)
    rollout = Rollout().append_turn(chat, Response((1,), (0.0,)))
    assert MaskedImages()(Group(Task("key", chat), (rollout,)), rollout) is None
