"""Questions about clips: coloured shapes that appear, move and disappear, drawn on the spot.

A clip has frames of 16 x 16 pixels, one a second. Two things move along it, one in the upper and
one in the lower half, each visible for a part of the clip.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from random import Random

import numpy as np
from jaxtyping import UInt8

from grupo.core.component import component
from grupo.core.media import Video
from grupo.core.ranges import PositiveInt
from grupo.core.types import Task
from grupo.tasks.base import LazyTasks, task_key
from grupo.tasks.scenes import COLOURS, SHAPES, noise_pixels, shape_mask
from grupo.util.errors import ConfigError
from grupo.util.rng import make_rng

FRAME_SIZE = 16  # pixels along a frame
HALF = 8  # pixels of a half's height
MIN_VISIBLE = 2  # frames
COMES_FIRST, LEAVES_LAST = "Which colour comes first?", "Which colour leaves last?"
ORDER_QUESTIONS = (COMES_FIRST, LEAVES_LAST)
Frames = UInt8[np.ndarray, "T 16 16 3"]


@dataclass(frozen=True)
class MovingThing:
    """A shape of one colour that moves from one side to the other.

    Args:
        colour: A name of `COLOURS`.
        shape: A name of `SHAPES`.
        half: 0 for the upper half of the frame, 1 for the lower.
        start: First frame in which it is visible.
        end: First frame after it in which it is not.
        rightwards: Whether it moves to the right.
    """

    colour: str
    shape: str
    half: int
    start: int
    end: int
    rightwards: bool

    @property
    def name(self) -> str:
        """Colour and shape."""
        return f"{self.colour} {self.shape}"


@component
class ClipSpans:
    """Questions for the time span in which a thing of a clip is visible.

    A prompt is a message with the video and "When is the red circle visible?"; the reference answer
    is (start, end) in seconds.

    Args:
        size: Number of tasks.
        seed: Seed of clips and questions.
        frames: Number of frames of a clip.
        blind: Whether noise takes the place of each frame, for the score of a policy that cannot
            see.

    >>> task = ClipSpans(size=1).load()[0]
    >>> task.prompt[0]["content"][0]["type"], task.prompt[0]["content"][1]["text"]
    ('video', 'When is the blue circle visible?')
    >>> task.reference_answer
    (2, 5)
    """

    size: PositiveInt = 4000
    seed: int = 0
    frames: PositiveInt = 8
    blind: bool = False

    def load(self) -> Sequence[Task]:
        return LazyTasks(self.size, self._task)

    def _task(self, index: int) -> Task:
        rng = make_rng(self.seed, "clip spans", index)
        things = random_clip(self.frames, rng)
        thing = rng.choice(things)
        shape = (self.frames, FRAME_SIZE, FRAME_SIZE, 3)
        frames = noise_pixels(rng, shape) if self.blind else draw_clip(things, self.frames, rng)
        prompt = video_prompt(Video.from_frames(frames, fps=1.0), span_question(thing))
        return Task(task_key(prompt), prompt, (thing.start, thing.end), "clip spans")


@component
class ClipOrder:
    """Questions for the colour of the thing that comes first or leaves last in a clip.

    Things differ in colour, in start and in end; the reference answer is a colour.

    Args:
        size: Number of tasks.
        seed: Seed of clips and questions.
        frames: Number of frames of a clip, at least 3.
        blind: Whether noise takes the place of each frame, for the accuracy of a policy that cannot
            see.

    >>> task = ClipOrder(size=1).load()[0]
    >>> task.prompt[0]["content"][1]["text"], task.reference_answer
    ('Which colour comes first?', 'red')
    """

    size: PositiveInt = 4000
    seed: int = 0
    frames: PositiveInt = 6
    blind: bool = False

    def __post_init__(self) -> None:
        if self.frames <= MIN_VISIBLE:
            raise ConfigError(
                f"ClipOrder.frames: {self.frames}. Allowed: {MIN_VISIBLE + 1} or more."
            )

    def load(self) -> Sequence[Task]:
        return LazyTasks(self.size, self._task)

    def _task(self, index: int) -> Task:
        rng = make_rng(self.seed, "clip order", index)
        things = ordered_clip(self.frames, rng)
        question = rng.choice(ORDER_QUESTIONS)
        shape = (self.frames, FRAME_SIZE, FRAME_SIZE, 3)
        frames = noise_pixels(rng, shape) if self.blind else draw_clip(things, self.frames, rng)
        prompt = video_prompt(Video.from_frames(frames, fps=1.0), question)
        return Task(task_key(prompt), prompt, order_answer(question, things), "clip order")


def order_answer(question: str, things: Sequence[MovingThing]) -> str:
    """The colour of the thing with the earliest start or with the latest end.

    >>> red = MovingThing("red", "circle", 0, start=0, end=3, rightwards=True)
    >>> blue = MovingThing("blue", "cross", 1, start=1, end=5, rightwards=True)
    >>> [order_answer(question, [red, blue]) for question in ORDER_QUESTIONS]
    ['red', 'blue']
    """
    if question == COMES_FIRST:
        return min(things, key=lambda thing: thing.start).colour
    return max(things, key=lambda thing: thing.end).colour


def ordered_clip(frames: int, rng: Random) -> Sequence[MovingThing]:
    """Two things of different colours that neither start nor end together.

    Args:
        frames: Number of frames of the clip, at least 3.
        rng: Draws the things.
    """
    while True:
        first, second = random_clip(frames, rng)
        if first.start != second.start and first.end != second.end:
            return first, second


def video_prompt(video: Video, text: str) -> tuple[dict[str, object], ...]:
    """A message of the user with a video and a text behind it."""
    parts = [{"type": "video", "video": video}, {"type": "text", "text": text}]
    return ({"role": "user", "content": parts},)


def span_question(thing: MovingThing) -> str:
    """The question for the time span of a thing."""
    return f"When is the {thing.name} visible?"


def random_clip(frames: int, rng: Random) -> Sequence[MovingThing]:
    """Two things of different colours, each visible for a random part of the clip."""
    colours = rng.sample([*COLOURS], 2)
    return [random_thing(colour, half, frames, rng) for half, colour in enumerate(colours)]


def random_thing(colour: str, half: int, frames: int, rng: Random) -> MovingThing:
    """A thing of random shape, time span and direction."""
    start = rng.randint(0, frames - MIN_VISIBLE)
    end = rng.randint(start + MIN_VISIBLE, frames)
    return MovingThing(colour, rng.choice(SHAPES), half, start, end, rng.random() < 0.5)


def draw_clip(things: Sequence[MovingThing], frames: int, rng: Random) -> Frames:
    """The frames of a clip on a background of random brightness."""
    noise = np.random.default_rng(rng.getrandbits(32))
    pixels = noise.normal(rng.randint(0, 70), 8.0, (frames, FRAME_SIZE, FRAME_SIZE, 3))
    for thing in things:
        size = rng.randint(6, 8)
        top = HALF * thing.half + rng.randint(0, HALF - size)
        for frame, left in zip(range(thing.start, thing.end), path(thing, size), strict=True):
            place = pixels[frame, top : top + size, left : left + size]
            place[shape_mask(thing.shape, size)] = COLOURS[thing.colour]
    return np.clip(pixels, 0, 255).astype(np.uint8)


def path(thing: MovingThing, size: int) -> Sequence[int]:
    """The left edge of a thing in each frame in which it is visible.

    >>> path(MovingThing("red", "circle", 0, 2, 5, rightwards=False), size=6)
    [10, 5, 0]
    """
    places = np.linspace(0, FRAME_SIZE - size, thing.end - thing.start).round().astype(int).tolist()
    return places if thing.rightwards else places[::-1]
