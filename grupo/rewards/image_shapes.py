"""Rewards of pictures, from their pixels: colours, counts, and who is on which side of whom."""

from collections.abc import Mapping, Sequence

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from grupo.core.component import component
from grupo.core.types import Rollout, Task
from grupo.rewards.base import PerRolloutReward
from grupo.storage import tensor_text
from grupo.tasks.shape_captions import Scene, ShapeSet, parse_scene

PixelBox = tuple[int, int, int, int]  # left, top, right, bottom, the last two included
PALETTE = {
    "red": torch.tensor([1.0, 0.0, 0.0]),
    "green": torch.tensor([0.0, 1.0, 0.0]),
    "blue": torch.tensor([0.0, 0.0, 1.0]),
    "yellow": torch.tensor([1.0, 1.0, 0.0]),
}
MIN_PATCH_PIXELS = 4  # pixels of a thing
SHAPE_PIXELS = {"square": 16, "circle": 12}  # pixels of one as it is drawn
HALF_DISTANCE = 8  # pixels between the middles of the two halves of a picture


def rollout_image(rollout: Rollout) -> Float[Tensor, "3 H W"]:
    """The picture that a rollout made, 0 to 1; raises ValueError where it made none."""
    made = rollout.turns[-1][1].image if rollout.turns else ""
    if not made:
        raise ValueError("the rollout made no picture: it was not drawn to its end")
    return tensor_text.decode_tensor(made).float() / 255


def palette_indices(image: Float[Tensor, "3 H W"]) -> Int[Tensor, "H W"]:
    """Of each pixel the number of the nearest colour of the palette, from 1 on; 0 is black."""
    colours = torch.stack([torch.zeros(3), *PALETTE.values()])
    return (image[None] - colours[:, :, None, None]).square().sum(1).argmin(0)


def colour_boxes(image: Float[Tensor, "3 H W"]) -> Mapping[str, Sequence[PixelBox]]:
    """Of each colour the boxes around its patches of `MIN_PATCH_PIXELS` or more pixels.

    A patch is connected along rows and columns.

    >>> picture = torch.zeros(3, 4, 4)
    >>> picture[0, :2, :2] = 1
    >>> colour_boxes(picture)["red"]
    [(0, 0, 1, 1)]
    """
    shade = palette_indices(image)
    return {name: _connected_boxes(shade == i) for i, name in enumerate(PALETTE, 1)}


def _connected_boxes(mask: Bool[Tensor, "H W"]) -> list[PixelBox]:
    left = {(int(y), int(x)) for y, x in mask.nonzero()}
    found = []
    while left:
        patch, edge = set[tuple[int, int]](), [left.pop()]
        while edge:
            y, x = edge.pop()
            patch.add((y, x))
            near = {(y + 1, x), (y - 1, x), (y, x + 1), (y, x - 1)} & left
            left -= near
            edge += near
        if len(patch) >= MIN_PATCH_PIXELS:
            ys, xs = zip(*patch, strict=True)
            found.append((min(xs), min(ys), max(xs), max(ys)))
    return sorted(found)


class SceneReward:
    """A reward that reads what a caption says of a scene."""

    def validate_tasks(self, tasks: Sequence[Task]) -> None:
        """Refuse captions that the world of shapes cannot draw."""
        for task in tasks:
            parse_scene(str(task.prompt))


@component
class ColourMatch(SceneReward, PerRolloutReward):
    """Colours that are both seen and named, as a share of those that are either."""

    def score(self, task: Task, rollout: Rollout) -> float:
        scene, found = parse_scene(str(task.prompt)), colour_boxes(rollout_image(rollout))
        named, seen = {x.colour for x in scene.shapes}, {c for c, some in found.items() if some}
        return len(named & seen) / len(named | seen)


@component
class AreaMatch(SceneReward, PerRolloutReward):
    """How nearly each colour covers what its things would: 1 - sum |a - e| / sum (a + e), 0 to 1.

    a is how many pixels are nearest each colour of the palette, e how many the caption asks for.
    """

    def score(self, task: Task, rollout: Rollout) -> float:
        things = {x.colour: x for x in parse_scene(str(task.prompt)).shapes}
        a = (
            palette_indices(rollout_image(rollout))
            .flatten()
            .bincount(minlength=1 + len(PALETTE))[1:]
        )
        named = (things.get(colour) for colour in PALETTE)
        e = torch.tensor([x.count * SHAPE_PIXELS[x.shape] if x else 0 for x in named])
        return 1 - ((a - e).abs().sum() / (a + e).sum()).item()


@component
class CountMatch(SceneReward, PerRolloutReward):
    """The share of the things named of which there are as many patches as there are to be."""

    def score(self, task: Task, rollout: Rollout) -> float:
        scene, found = parse_scene(str(task.prompt)), colour_boxes(rollout_image(rollout))
        right = [len(found[things.colour]) == things.count for things in scene.shapes]
        return sum(right) / len(right)


@component
class Forms(SceneReward, PerRolloutReward):
    """Of each thing named the share of patches of its colour that have its shape; their mean.

    A square has all four corners of its box, a circle none.
    """

    def score(self, task: Task, rollout: Rollout) -> float:
        scene, picture = parse_scene(str(task.prompt)), rollout_image(rollout)
        shade, found = palette_indices(picture), colour_boxes(picture)
        formed = [_shape_fraction(shade, things, found[things.colour]) for things in scene.shapes]
        return sum(formed) / len(formed)


def _shape_fraction(
    indices: Int[Tensor, "H W"], shapes: ShapeSet, boxes: Sequence[PixelBox]
) -> float:
    colour = 1 + [*PALETTE].index(shapes.colour)
    here = [
        sum(int(indices[y, x]) == colour for x in (left, right) for y in (top, bottom))
        for left, top, right, bottom in boxes
    ]
    wanted = 4 if shapes.shape == "square" else 0
    return sum(n == wanted for n in here) / max(1, len(here))


class SideReward(SceneReward):
    """A reward of who is on which side; it does not apply to a caption that names none."""

    def score_image(self, scene: Scene, image: Float[Tensor, "3 H W"]) -> float:
        """What one picture is worth."""
        raise NotImplementedError

    def __call__(self, task: Task, rollouts: Sequence[Rollout]) -> Sequence[float | None]:
        scene = parse_scene(str(task.prompt))
        if not scene.side:
            return [None] * len(rollouts)
        return [self.score_image(scene, rollout_image(rollout)) for rollout in rollouts]


@component
class SideMatch(SideReward):
    """1 where everything of the first colour is on its side of everything of the second."""

    def score_image(self, scene: Scene, image: Float[Tensor, "3 H W"]) -> float:
        return float(_is_on_side(scene, colour_boxes(image)))


def _is_on_side(scene: Scene, boxes: Mapping[str, Sequence[PixelBox]]) -> bool:
    one, other = (boxes[things.colour] for things in scene.shapes)
    if scene.side in ("right of", "below"):
        one, other = other, one
    axis = 0 if scene.side in ("left of", "right of") else 1
    known = bool(one) and bool(other)
    return known and max(box[axis + 2] for box in one) < min(box[axis] for box in other)


@component
class RelativePosition(SideReward):
    """How far the first colour's centre lies on its side of the second's: 1/2 + d / 16, 0 to 1.

    d is in pixels, 8 where each lies in the middle of its half; 0 where one is not seen.
    """

    def score_image(self, scene: Scene, image: Float[Tensor, "3 H W"]) -> float:
        return _relative_position(scene, palette_indices(image))


def _relative_position(scene: Scene, indices: Int[Tensor, "H W"]) -> float:
    numbers = (1 + [*PALETTE].index(things.colour) for things in scene.shapes)
    one, other = ((indices == number).nonzero().float() for number in numbers)
    if min(len(one), len(other)) < MIN_PATCH_PIXELS:
        return 0.0
    axis = 1 if scene.side in ("left of", "right of") else 0
    d = (other.mean(0) - one.mean(0))[axis].item()
    ahead = -d if scene.side in ("right of", "below") else d
    return min(1.0, max(0.0, 0.5 + ahead / (2 * HALF_DISTANCE)))
