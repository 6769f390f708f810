"""Rewards of pictures, from their pixels: colours, counts, and who is on which side of whom."""

from collections.abc import Mapping, Sequence

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from grupo.core.component import piece
from grupo.core.types import Rollout, Task
from grupo.rewards.base import EachRollout
from grupo.storage import tensor_text
from grupo.tasks.shape_captions import Scene, Things, scene_of

Box = tuple[int, int, int, int]  # left, top, right, bottom, the last two included
PALETTE = {
    "red": torch.tensor([1.0, 0.0, 0.0]),
    "green": torch.tensor([0.0, 1.0, 0.0]),
    "blue": torch.tensor([0.0, 0.0, 1.0]),
    "yellow": torch.tensor([1.0, 1.0, 0.0]),
}
SMALLEST = 4  # pixels of a thing
AREA = {"square": 16, "circle": 12}  # pixels of one as it is drawn
HALF = 8  # pixels between the middles of the two halves of a picture


def pixels(rollout: Rollout) -> Float[Tensor, "3 H W"]:
    """The picture that a rollout made, 0 to 1; raises ValueError where it made none."""
    made = rollout.turns[-1][1].made if rollout.turns else ""
    if not made:
        raise ValueError("the rollout made no picture: it was not drawn to its end")
    return tensor_text.read(made).float() / 255


def shades(picture: Float[Tensor, "3 H W"]) -> Int[Tensor, "H W"]:
    """Of each pixel the number of the nearest colour of the palette, from 1 on; 0 is black."""
    colours = torch.stack([torch.zeros(3), *PALETTE.values()])
    return (picture[None] - colours[:, :, None, None]).square().sum(1).argmin(0)


def patches(picture: Float[Tensor, "3 H W"]) -> Mapping[str, Sequence[Box]]:
    """Of each colour the boxes around its patches of `SMALLEST` or more pixels.

    A patch is connected along rows and columns.

    >>> picture = torch.zeros(3, 4, 4)
    >>> picture[0, :2, :2] = 1
    >>> patches(picture)["red"]
    [(0, 0, 1, 1)]
    """
    shade = shades(picture)
    return {name: _connected(shade == i) for i, name in enumerate(PALETTE, 1)}


def _connected(here: Bool[Tensor, "H W"]) -> list[Box]:
    left = {(int(y), int(x)) for y, x in here.nonzero()}
    found = []
    while left:
        patch, edge = set[tuple[int, int]](), [left.pop()]
        while edge:
            y, x = edge.pop()
            patch.add((y, x))
            near = {(y + 1, x), (y - 1, x), (y, x + 1), (y, x - 1)} & left
            left -= near
            edge += near
        if len(patch) >= SMALLEST:
            ys, xs = zip(*patch, strict=True)
            found.append((min(xs), min(ys), max(xs), max(ys)))
    return sorted(found)


class OfScenes:
    """A reward that reads what a caption says of a scene."""

    def admit(self, tasks: Sequence[Task]) -> None:
        """Refuse captions that the world of shapes cannot draw."""
        for task in tasks:
            scene_of(str(task.prompt))


@piece
class Colours(OfScenes, EachRollout):
    """Colours that are both seen and named, as a share of those that are either."""

    def judge(self, task: Task, rollout: Rollout) -> float:
        scene, found = scene_of(str(task.prompt)), patches(pixels(rollout))
        named, seen = {x.colour for x in scene.things}, {c for c, some in found.items() if some}
        return len(named & seen) / len(named | seen)


@piece
class Areas(OfScenes, EachRollout):
    """How nearly each colour covers what its things would: 1 - sum |a - e| / sum (a + e), 0 to 1.

    a is how many pixels are nearest each colour of the palette, e how many the caption asks for.
    """

    def judge(self, task: Task, rollout: Rollout) -> float:
        things = {x.colour: x for x in scene_of(str(task.prompt)).things}
        a = shades(pixels(rollout)).flatten().bincount(minlength=1 + len(PALETTE))[1:]
        named = (things.get(colour) for colour in PALETTE)
        e = torch.tensor([x.count * AREA[x.shape] if x else 0 for x in named])
        return 1 - ((a - e).abs().sum() / (a + e).sum()).item()


@piece
class Counts(OfScenes, EachRollout):
    """The share of the things named of which there are as many patches as there are to be."""

    def judge(self, task: Task, rollout: Rollout) -> float:
        scene, found = scene_of(str(task.prompt)), patches(pixels(rollout))
        right = [len(found[things.colour]) == things.count for things in scene.things]
        return sum(right) / len(right)


@piece
class Forms(OfScenes, EachRollout):
    """Of each thing named the share of patches of its colour that have its shape; their mean.

    A square has all four corners of its box, a circle none.
    """

    def judge(self, task: Task, rollout: Rollout) -> float:
        scene, picture = scene_of(str(task.prompt)), pixels(rollout)
        shade, found = shades(picture), patches(picture)
        formed = [_formed(shade, things, found[things.colour]) for things in scene.things]
        return sum(formed) / len(formed)


def _formed(shade: Int[Tensor, "H W"], things: Things, boxes: Sequence[Box]) -> float:
    colour = 1 + [*PALETTE].index(things.colour)
    here = [
        sum(int(shade[y, x]) == colour for x in (left, right) for y in (top, bottom))
        for left, top, right, bottom in boxes
    ]
    wanted = 4 if things.shape == "square" else 0
    return sum(n == wanted for n in here) / max(1, len(here))


class OfSides(OfScenes):
    """A reward of who is on which side; it does not apply to a caption that names none."""

    def beside(self, scene: Scene, picture: Float[Tensor, "3 H W"]) -> float:
        """What one picture is worth."""
        raise NotImplementedError

    def __call__(self, task: Task, rollouts: Sequence[Rollout]) -> Sequence[float | None]:
        scene = scene_of(str(task.prompt))
        if not scene.side:
            return [None] * len(rollouts)
        return [self.beside(scene, pixels(rollout)) for rollout in rollouts]


@piece
class Sides(OfSides):
    """1 where everything of the first colour is on its side of everything of the second."""

    def beside(self, scene: Scene, picture: Float[Tensor, "3 H W"]) -> float:
        return float(_apart(scene, patches(picture)))


def _apart(scene: Scene, found: Mapping[str, Sequence[Box]]) -> bool:
    one, other = (found[things.colour] for things in scene.things)
    if scene.side in ("right of", "below"):
        one, other = other, one
    axis = 0 if scene.side in ("left of", "right of") else 1
    known = bool(one) and bool(other)
    return known and max(box[axis + 2] for box in one) < min(box[axis] for box in other)


@piece
class Lean(OfSides):
    """How far the first colour's centre lies on its side of the second's: 1/2 + d / 16, 0 to 1.

    d is in pixels, 8 where each lies in the middle of its half; 0 where one is not seen.
    """

    def beside(self, scene: Scene, picture: Float[Tensor, "3 H W"]) -> float:
        return _lean(scene, shades(picture))


def _lean(scene: Scene, shade: Int[Tensor, "H W"]) -> float:
    numbers = (1 + [*PALETTE].index(things.colour) for things in scene.things)
    one, other = ((shade == number).nonzero().float() for number in numbers)
    if min(len(one), len(other)) < SMALLEST:
        return 0.0
    axis = 1 if scene.side in ("left of", "right of") else 0
    d = (other.mean(0) - one.mean(0))[axis].item()
    ahead = -d if scene.side in ("right of", "below") else d
    return min(1.0, max(0.0, 0.5 + ahead / (2 * HALF)))
