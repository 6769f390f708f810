"""Rewards for images of coloured shapes, computed from pixels: colours, counts, shapes, sides."""

from collections.abc import Mapping, Sequence

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from grupo.core.component import component
from grupo.core.types import Rollout, Task
from grupo.rewards.base import PerRolloutReward
from grupo.storage import tensor_text
from grupo.tasks.shape_captions import Scene, ShapeSet, parse_scene

PixelBox = tuple[int, int, int, int]  # left, top, right, bottom, all inclusive
PALETTE = {
    "red": torch.tensor([1.0, 0.0, 0.0]),
    "green": torch.tensor([0.0, 1.0, 0.0]),
    "blue": torch.tensor([0.0, 0.0, 1.0]),
    "yellow": torch.tensor([1.0, 1.0, 0.0]),
}
MIN_PATCH_PIXELS = 4  # smaller patches of a colour are noise
SHAPE_PIXELS = {"square": 16, "circle": 12}  # pixels of one drawn shape
HALF_DISTANCE = 8  # pixels between the centres of the two halves of an image


def rollout_image(rollout: Rollout) -> Float[Tensor, "3 H W"]:
    """The rollout's image, with pixels from 0 to 1; raises ValueError if it has none."""
    encoded = rollout.last_response.image if rollout.turns else ""
    if not encoded:
        raise ValueError("the rollout has no image: it was not denoised to the end")
    return tensor_text.decode_tensor(encoded).float() / 255


def palette_indices(image: Float[Tensor, "3 H W"]) -> Int[Tensor, "H W"]:
    """The index of each pixel's nearest colour in the palette, from 1; 0 is black."""
    colours = torch.stack([torch.zeros(3), *PALETTE.values()])
    return (image[None] - colours[:, :, None, None]).square().sum(1).argmin(0)


def colour_boxes(image: Float[Tensor, "3 H W"]) -> Mapping[str, Sequence[PixelBox]]:
    """The bounding boxes of each colour's patches of at least `MIN_PATCH_PIXELS` pixels.

    The pixels of a patch are connected along rows and columns.

    >>> image = torch.zeros(3, 4, 4)
    >>> image[0, :2, :2] = 1
    >>> colour_boxes(image)["red"]
    [(0, 0, 1, 1)]
    """
    indices = palette_indices(image)
    return {name: _connected_boxes(indices == i) for i, name in enumerate(PALETTE, 1)}


def _connected_boxes(mask: Bool[Tensor, "H W"]) -> list[PixelBox]:
    unvisited = {(int(y), int(x)) for y, x in mask.nonzero()}
    boxes = []
    while unvisited:
        patch = set[tuple[int, int]]()
        frontier = [unvisited.pop()]
        while frontier:
            y, x = frontier.pop()
            patch.add((y, x))
            neighbours = {(y + 1, x), (y - 1, x), (y, x + 1), (y, x - 1)} & unvisited
            unvisited -= neighbours
            frontier += neighbours
        if len(patch) >= MIN_PATCH_PIXELS:
            ys, xs = zip(*patch, strict=True)
            boxes.append((min(xs), min(ys), max(xs), max(ys)))
    return sorted(boxes)


class SceneReward:
    """Base class of rewards whose prompts are captions of coloured shapes."""

    def validate_tasks(self, tasks: Sequence[Task]) -> None:
        """Raises `ConfigError` if a prompt is not such a caption."""
        for task in tasks:
            parse_scene(str(task.prompt))


@component
class ColourMatch(SceneReward, PerRolloutReward):
    """Intersection over union of the colours in the image and those in the caption."""

    def score(self, task: Task, rollout: Rollout) -> float:
        scene = parse_scene(str(task.prompt))
        boxes = colour_boxes(rollout_image(rollout))
        captioned = {shape_set.colour for shape_set in scene.shapes}
        present = {colour for colour, patches in boxes.items() if patches}
        return len(captioned & present) / len(captioned | present)


@component
class AreaMatch(SceneReward, PerRolloutReward):
    """1 - sum |a - e| / sum (a + e) over colours: how well the coloured areas match, 0 to 1.

    a is the number of pixels nearest to a colour of the palette, e the number that the caption's
    shapes of that colour have.
    """

    def score(self, task: Task, rollout: Rollout) -> float:
        by_colour = {x.colour: x for x in parse_scene(str(task.prompt)).shapes}
        indices = palette_indices(rollout_image(rollout)).flatten()
        a = indices.bincount(minlength=1 + len(PALETTE))[1:]
        captioned = (by_colour.get(colour) for colour in PALETTE)
        e = torch.tensor([x.count * SHAPE_PIXELS[x.shape] if x else 0 for x in captioned])
        return 1 - ((a - e).abs().sum() / (a + e).sum()).item()


@component
class CountMatch(SceneReward, PerRolloutReward):
    """The fraction of the caption's colours that have the right number of patches."""

    def score(self, task: Task, rollout: Rollout) -> float:
        scene = parse_scene(str(task.prompt))
        boxes = colour_boxes(rollout_image(rollout))
        correct = [len(boxes[x.colour]) == x.count for x in scene.shapes]
        return sum(correct) / len(correct)


@component
class ShapeMatch(SceneReward, PerRolloutReward):
    """The fraction of each colour's patches that have the captioned shape, averaged over colours.

    A square fills all four corners of its bounding box, a circle none.
    """

    def score(self, task: Task, rollout: Rollout) -> float:
        scene = parse_scene(str(task.prompt))
        image = rollout_image(rollout)
        indices = palette_indices(image)
        boxes = colour_boxes(image)
        fractions = [_shape_fraction(indices, x, boxes[x.colour]) for x in scene.shapes]
        return sum(fractions) / len(fractions)


def _shape_fraction(
    indices: Int[Tensor, "H W"], shapes: ShapeSet, boxes: Sequence[PixelBox]
) -> float:
    colour = 1 + [*PALETTE].index(shapes.colour)
    filled_corners = [
        sum(int(indices[y, x]) == colour for x in (left, right) for y in (top, bottom))
        for left, top, right, bottom in boxes
    ]
    expected = 4 if shapes.shape == "square" else 0
    return sum(n == expected for n in filled_corners) / max(1, len(filled_corners))


class SideReward(SceneReward):
    """Base class of rewards for relative positions; None for captions that have no side."""

    def score_image(self, scene: Scene, image: Float[Tensor, "3 H W"]) -> float:
        """The value of one image."""
        raise NotImplementedError

    def __call__(self, task: Task, rollouts: Sequence[Rollout]) -> Sequence[float | None]:
        scene = parse_scene(str(task.prompt))
        if not scene.side:
            return [None] * len(rollouts)
        return [self.score_image(scene, rollout_image(rollout)) for rollout in rollouts]


@component
class SideMatch(SideReward):
    """1 if all patches of the first colour are on the captioned side of all of the second."""

    def score_image(self, scene: Scene, image: Float[Tensor, "3 H W"]) -> float:
        return float(_is_on_side(scene, colour_boxes(image)))


def _is_on_side(scene: Scene, boxes: Mapping[str, Sequence[PixelBox]]) -> bool:
    lower, upper = (boxes[x.colour] for x in scene.shapes)
    if scene.side in ("right of", "below"):
        lower, upper = upper, lower
    if not lower or not upper:
        return False
    axis = 0 if scene.side in ("left of", "right of") else 1
    return max(box[axis + 2] for box in lower) < min(box[axis] for box in upper)


@component
class RelativePosition(SideReward):
    """1/2 + d / 16, clipped to 0..1: how far the first colour is on its side of the second.

    d is the distance of the centroids in pixels along the side's axis, 8 if each lies in the middle
    of its half. The reward is 0 if a colour is missing.
    """

    def score_image(self, scene: Scene, image: Float[Tensor, "3 H W"]) -> float:
        return _relative_position(scene, palette_indices(image))


def _relative_position(scene: Scene, indices: Int[Tensor, "H W"]) -> float:
    colours = (1 + [*PALETTE].index(x.colour) for x in scene.shapes)
    first, second = ((indices == colour).nonzero().float() for colour in colours)
    if min(len(first), len(second)) < MIN_PATCH_PIXELS:
        return 0.0
    axis = 1 if scene.side in ("left of", "right of") else 0
    d = (second.mean(0) - first.mean(0))[axis].item()
    if scene.side in ("right of", "below"):
        d = -d
    return min(1.0, max(0.0, 0.5 + d / (2 * HALF_DISTANCE)))
