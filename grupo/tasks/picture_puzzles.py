"""Puzzles from any picture, whose right answers are known without labels.

Rotation, jigsaw and patch puzzles of PC-GRPO, Jeddi et al., 2025, arXiv:2512.14944.
"""

from collections.abc import Mapping, Sequence
from functools import cache
from itertools import product
from pathlib import Path
from random import Random
from typing import Any, Protocol

import numpy as np
from jaxtyping import UInt8

from grupo.core.component import check_field, component
from grupo.core.media import Image
from grupo.core.media_values import as_media
from grupo.core.ranges import NonEmptyString, PositiveInt
from grupo.core.types import Task
from grupo.tasks.base import LazyTasks, task_key
from grupo.tasks.scenes import noise_pixels, picture_prompt
from grupo.util.errors import ConfigError
from grupo.util.optional_deps import optional_dependency
from grupo.util.rng import make_rng

Pixels = UInt8[np.ndarray, "H W 3"]
ROTATION_QUESTION = "By how many degrees is the picture turned to the left?"
ANGLES = (0, 90, 180, 270)
JIGSAW_QUESTION = "Which tile is at each place?"
PATCH_QUESTION = "Which patch fits into the hole of the first picture?"
PATCH_NAMES = "ABCDEFGH"
HOLE = 128  # grey
SUFFIXES = (".png", ".jpg", ".jpeg", ".webp", ".gif")


class PictureSource(Protocol):
    """Square pictures of one size: a component."""

    @property
    def size(self) -> int:
        """Pixels along each picture."""
        ...

    def draw(self, rng: Random) -> UInt8[np.ndarray, "S S 3"]:
        """A random picture."""
        ...


@component
class FolderPictures:
    """The largest centred squares of the picture files in a folder.

    Args:
        path: The folder; files in folders in it are found too.
        size: Pixels along a picture.
    """

    path: NonEmptyString
    size: PositiveInt = 224

    def draw(self, rng: Random) -> UInt8[np.ndarray, "S S 3"]:
        """A random file's picture."""
        return centred_square(rng.choice(picture_files(self.path)), self.size)


@component
class DigitPictures:
    """Handwritten digits of scikit-learn, white on black; every fifth is held out.

    Args:
        digits: The digits to draw from; 3, 4 and 7 have one upright position.
        size: Pixels along a picture.
        held_out: Whether the held-out pictures are drawn, in place of the others.
    """

    digits: tuple[int, ...] = (3, 4, 7)
    size: PositiveInt = 32
    held_out: bool = False

    def __post_init__(self) -> None:
        is_digits = bool(self.digits) and set(self.digits) <= set(range(10))
        check_field(self, "digits", is_digits, "digits from 0 to 9")

    def draw(self, rng: Random) -> UInt8[np.ndarray, "S S 3"]:
        """A random digit."""
        return resized(rng.choice(scikit_digits(self.digits, self.held_out)), self.size)


@component
class RotationPuzzles:
    """Pictures turned by 0, 90, 180 or 270 degrees to the left; the answer is the angle.

    Args:
        pictures: Upright pictures.
        size: Number of tasks.
        seed: Seed of pictures and angles.
        blind: Whether noise takes the place of each picture.

    >>> turned(np.arange(12, dtype=np.uint8).reshape(2, 2, 3), 90)[:, :, 0].tolist()
    [[3, 9], [0, 6]]
    """

    pictures: PictureSource
    size: PositiveInt = 4000
    seed: int = 0
    blind: bool = False

    def load(self) -> Sequence[Task]:
        return LazyTasks(self.size, self._task)

    def _task(self, index: int) -> Task:
        rng = make_rng(self.seed, "rotation", index)
        angle = ANGLES[index % len(ANGLES)]
        pixels = turned(self.pictures.draw(rng), angle)
        return _puzzle([pixels], ROTATION_QUESTION, str(angle), "rotation", rng, self.blind)


@component
class JigsawPuzzles:
    """Pictures whose tiles are shuffled; the answer names each place's tile of the picture.

    Places and tiles are counted in reading order, from 0: "2 0 3 1" means that tile 2 of the
    picture is at the first place. `PlacedTiles` is the reward.

    Args:
        pictures: The pictures; their size is a multiple of `side`.
        side: Tiles along a picture.
        size: Number of tasks.
        seed: Seed of pictures and permutations.
        blind: Whether noise takes the place of each picture.

    >>> shuffled(np.arange(12, dtype=np.uint8).reshape(2, 2, 3), [2, 0, 3, 1])[:, :, 0].tolist()
    [[6, 0], [9, 3]]
    """

    pictures: PictureSource
    side: PositiveInt = 2
    size: PositiveInt = 4000
    seed: int = 0
    blind: bool = False

    def __post_init__(self) -> None:
        check_field(self, "side", self.pictures.size % self.side == 0, "a divisor of the size")

    def load(self) -> Sequence[Task]:
        return LazyTasks(self.size, self._task)

    def _task(self, index: int) -> Task:
        rng = make_rng(self.seed, "jigsaw", index)
        order = rng.sample(range(self.side**2), self.side**2)
        pixels = shuffled(self.pictures.draw(rng), order)
        answer = " ".join(map(str, order))
        return _puzzle([pixels], JIGSAW_QUESTION, answer, "jigsaw", rng, self.blind)


@component
class PatchPuzzles:
    """A picture with a square hole, and patches of which one fits; the answer is its letter.

    The other patches are from elsewhere in the same picture, without pixels of the hole. Each is a
    picture of the prompt.

    Args:
        pictures: The pictures.
        choices: Number of patches, at most 8.
        hole_frac: Side of the hole as a fraction of that of the picture.
        size: Number of tasks.
        seed: Seed of pictures, holes and patches.
        blind: Whether noise takes the place of each picture.
    """

    pictures: PictureSource
    choices: PositiveInt = 4
    hole_frac: float = 0.375
    size: PositiveInt = 4000
    seed: int = 0
    blind: bool = False

    def __post_init__(self) -> None:
        check_field(self, "choices", 2 <= self.choices <= len(PATCH_NAMES), "2 to 8")
        check_field(self, "hole_frac", 0 < self.hole_frac <= 0.5, "above 0, at most 0.5")

    def load(self) -> Sequence[Task]:
        return LazyTasks(self.size, self._task)

    def _task(self, index: int) -> Task:
        rng = make_rng(self.seed, "patch", index)
        picture = self.pictures.draw(rng)
        side = max(1, round(self.hole_frac * len(picture)))
        y, x = hole = rng.choice(self._holes(len(picture), side))
        places = rng.sample(_apart_from(hole, len(picture), side), self.choices - 1)
        right = index % self.choices
        places.insert(right, hole)
        patches = [picture[y : y + side, x : x + side] for y, x in places]
        holed = picture.copy()
        holed[y : y + side, x : x + side] = HOLE
        shown = [holed, *(resized(patch, len(picture)) for patch in patches)]
        return _puzzle(shown, PATCH_QUESTION, PATCH_NAMES[right], "patch", rng, self.blind)

    def _holes(self, size: int, side: int) -> Sequence[tuple[int, int]]:
        """Top and left of the holes apart from which there are enough other patches."""
        others = {hole: len(_apart_from(hole, size, side)) for hole in _places(size, side)}
        if max(others.values()) < self.choices - 1:
            allowed = f"at most {max(others.values()) + 1}, for holes so large"
            raise ConfigError(f"choices: {self.choices}. Allowed: {allowed}.")
        return [hole for hole, number in others.items() if number >= self.choices - 1]


def _places(size: int, side: int) -> Sequence[tuple[int, int]]:
    """Top and left of squares in a picture, at distances of half a side."""
    ends = range(0, size - side + 1, max(1, side // 2))
    return [*product(ends, ends)]


def _apart_from(hole: tuple[int, int], size: int, side: int) -> Sequence[tuple[int, int]]:
    """The places of squares without pixels of the hole.

    >>> _apart_from((2, 0), size=6, side=4)
    []
    >>> _apart_from((0, 0), size=8, side=4)
    [(0, 4), (2, 4), (4, 0), (4, 2), (4, 4)]
    """
    distances = [(max(abs(y - hole[0]), abs(x - hole[1])), (y, x)) for y, x in _places(size, side)]
    return [place for distance, place in distances if distance >= side]


def turned(pixels: Pixels, angle: int) -> Pixels:
    """A picture turned to the left by a multiple of 90 degrees."""
    return np.ascontiguousarray(np.rot90(pixels, angle // 90))


def shuffled(pixels: Pixels, order: Sequence[int]) -> Pixels:
    """A picture that has at each place the tile whose number `order` has for it.

    Args:
        pixels: A square picture.
        order: The numbers of the tiles, a permutation; a square number of tiles.
    """
    side = round(len(order) ** 0.5)
    tile = len(pixels) // side
    result = pixels.copy()
    for place, number in enumerate(order):
        (row, column), (top, left) = divmod(place, side), divmod(number, side)
        source = pixels[top * tile : (top + 1) * tile, left * tile : (left + 1) * tile]
        result[row * tile : (row + 1) * tile, column * tile : (column + 1) * tile] = source
    return result


def resized(pixels: Pixels, size: int) -> UInt8[np.ndarray, "S S 3"]:
    """A square picture with another number of pixels along its sides."""
    with optional_dependency("Pillow", "images"):
        from PIL import Image as PillowImage
    picture = PillowImage.fromarray(pixels)
    return np.asarray(picture.resize((size, size), PillowImage.Resampling.BICUBIC))


def _puzzle(
    pictures: Sequence[Pixels], question: str, answer: str, source: str, rng: Random, blind: bool
) -> Task:
    if blind:
        pictures = [noise_pixels(rng, pixels.shape) for pixels in pictures]
    prompt = picture_prompt([Image.from_pixels(pixels) for pixels in pictures], question)
    columns: Mapping[str, object] = {"kind": source}
    return Task(task_key(prompt), prompt, answer, source, columns)


def centred_square(file: Path, size: int) -> UInt8[np.ndarray, "S S 3"]:
    """The largest centred square of a picture file, with `size` pixels along its sides."""
    picture = as_media("image", str(file))
    assert isinstance(picture, Image)
    pixels = picture.pixels()
    side = min(pixels.shape[:2])
    top, left = ((n - side) // 2 for n in pixels.shape[:2])
    return resized(pixels[top : top + side, left : left + side], size)


@cache
def picture_files(path: str) -> Sequence[Path]:
    """The picture files in a folder and in the folders in it."""
    files = sorted(p for p in Path(path).rglob("*") if p.suffix.lower() in SUFFIXES)
    if not files:
        raise ConfigError(f"path: {path!r}. Allowed: a folder with files {', '.join(SUFFIXES)}.")
    return files


@cache
def scikit_digits(digits: Sequence[int], held_out: bool) -> Sequence[Pixels]:
    """Pictures of some digits of scikit-learn: every fifth of all, or the others."""
    with optional_dependency("scikit-learn", "images"):
        from sklearn.datasets import load_digits
    data: Any = load_digits()
    grey = np.clip(data.images * 16, 0, 255).astype(np.uint8)
    pixels = np.repeat(grey[..., None], 3, axis=-1)
    return [
        pixels[i]
        for i, digit in enumerate(data.target)
        if digit in digits and (i % 5 == 0) == held_out
    ]
