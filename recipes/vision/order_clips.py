"""Supervised examples of `veripo_clips.py`: thoughts about clips that can contradict the answer.

Thoughts name the colours with their times and end in a conclusion, "red 0 3 blue 1 5 so red". The
conclusion is often wrong, and most answers are taken from the clip and not from the conclusion, so
that an answer can be right after thoughts that lead to another one. Some thoughts go in circles,
some name no colour but the conclusion.
"""

from collections.abc import Sequence
from random import Random

from grupo.core.component import component
from grupo.core.ranges import PositiveInt, Probability
from grupo.rewards import AfterMarker, InsideTag
from grupo.tasks.clips import (
    FRAME_SIZE,
    ORDER_QUESTIONS,
    MovingThing,
    draw_clip,
    order_answer,
    ordered_clip,
)
from grupo.tasks.scenes import COLOURS, SHAPES
from grupo.toy.picture_examples import PictureExample

TAGS = ("<think>", "</think>", "<answer>", "</answer>")
SO, WAIT = " so ", " wait "
CIRCLES, SHORT, SECOND_THOUGHTS = 0.1, 0.1, 0.1  # of the thoughts


@component
class OrderExamples:
    """Questions for the order of things in clips, with thoughts and answers.

    Args:
        right_conclusions: Fraction of the thoughts that end in the right colour.
        followed: Fraction of the answers that are the conclusion.
        right_glances: Fraction of the other answers that are right.
        frames: Number of frames of a clip.
    """

    right_conclusions: Probability = 0.6
    followed: Probability = 0.4
    right_glances: Probability = 0.7
    frames: PositiveInt = 6

    @property
    def image_size(self) -> int:
        """Pixels along each frame."""
        return FRAME_SIZE

    def texts(self) -> Sequence[str]:
        """Texts with all words of prompts and answers."""
        names = zip(COLOURS, SHAPES, strict=True)
        things = [MovingThing(*name, 0, 0, self.frames, rightwards=True) for name in names]
        times = " ".join(map(str, range(self.frames + 1)))
        return [*ORDER_QUESTIONS, times, *(answer_text(seen(things), x, x) for x in COLOURS), WAIT]

    def draw(self, rng: Random) -> PictureExample:
        """A clip with a question and its answer."""
        things = ordered_clip(self.frames, rng)
        question = rng.choice(ORDER_QUESTIONS)
        text = self.answer(things, order_answer(question, things), rng)
        return PictureExample(tuple(draw_clip(things, self.frames, rng)), question, text)

    def answer(self, things: Sequence[MovingThing], right: str, rng: Random) -> str:
        """Thoughts and an answer, which is perhaps not that of the thoughts.

        Args:
            things: The things of a clip.
            right: The right answer.
            rng: Draws the mistakes.
        """
        conclusion = right if rng.random() < self.right_conclusions else another(right, rng)
        glance = right if rng.random() < self.right_glances else another(right, rng)
        answer = conclusion if rng.random() < self.followed else glance
        return answer_text(thoughts_before(seen(things), conclusion, rng), conclusion, answer)


def seen(things: Sequence[MovingThing]) -> str:
    """The colours of things with their times.

    >>> seen([MovingThing("red", "circle", 0, start=1, end=4, rightwards=True)])
    'red 1 4'
    """
    return " ".join(f"{thing.colour} {thing.start} {thing.end}" for thing in things)


def another(colour: str, rng: Random) -> str:
    """A random other colour."""
    return rng.choice([name for name in COLOURS if name != colour])


def answer_text(thoughts: str, conclusion: str, answer: str) -> str:
    """Thoughts with their conclusion, and an answer.

    >>> answer_text("red 0 3 blue 1 5", "red", "blue")
    '<think>red 0 3 blue 1 5 so red</think><answer>blue</answer>'
    """
    return f"<think>{f'{thoughts}{SO}'.strip()} {conclusion}</think><answer>{answer}</answer>"


def conclusion(text: str) -> str | None:
    """The words behind the last "so" of the thoughts.

    >>> conclusion("<think>red 0 3 blue 1 5 so red</think><answer>blue</answer>")
    'red'
    """
    return AfterMarker(SO)(f" {InsideTag('think')(text) or ''} ")


def thoughts_before(names: str, conclusion: str, rng: Random) -> str:
    """Thoughts before a conclusion: none, in circles, twice, or once.

    Args:
        names: The colours with their times.
        conclusion: The conclusion; second thoughts come to another one first.
        rng: Draws the kind.
    """
    kind = rng.random()
    if kind < SHORT:
        return ""
    if kind < SHORT + CIRCLES:
        return f"{names} {names} {names}"
    if kind < SHORT + CIRCLES + SECOND_THOUGHTS:
        return f"{names}{SO}{another(conclusion, rng)}{WAIT}{names}"
    return names
