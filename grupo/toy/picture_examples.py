"""Supervised examples of pictures with prompts and answers, for toy vision-language models."""

from collections.abc import Sequence
from dataclasses import dataclass
from random import Random
from typing import Any, Protocol

import numpy as np
from jaxtyping import UInt8

from grupo.core.component import component
from grupo.core.media import Image, media_of
from grupo.core.ranges import PositiveInt, Probability
from grupo.core.types import Task
from grupo.tasks.base import TaskSource
from grupo.tasks.scenes import (
    CAPTION_REQUEST,
    COUNTS,
    IMAGE_SIZE,
    KINDS,
    SIDES,
    Thing,
    caption_of,
    draw_scene,
    questions_about,
    random_question,
)


@dataclass(frozen=True)
class PictureExample:
    """A supervised example.

    Args:
        pictures: Pixels of each picture; the frames of a video are pictures.
        prompt: The text behind the pictures.
        answer: The text that is trained.
    """

    pictures: tuple[UInt8[np.ndarray, "H W 3"], ...]
    prompt: str
    answer: str


class PictureExamples(Protocol):
    """A source of supervised examples: a component."""

    @property
    def image_size(self) -> int:
        """Pixels along each picture."""
        ...

    def texts(self) -> Sequence[str]:
        """Texts with all words of prompts and answers; each word becomes a token."""
        ...

    def draw(self, rng: Random) -> PictureExample:
        """Draw a random example."""
        ...


@component
class SceneExamples:
    """Captions of scenes, and questions about them.

    Args:
        question_frac: Fraction of the examples that are questions; the others are captions.
    """

    question_frac: Probability = 0.4

    @property
    def image_size(self) -> int:
        """Pixels along each picture."""
        return IMAGE_SIZE

    def texts(self) -> Sequence[str]:
        """Texts with all words of prompts and answers."""
        things = [
            Thing(colour, shape, quarter)
            for quarter, (colour, shape) in enumerate(
                [("red", "circle"), ("green", "square"), ("blue", "triangle"), ("yellow", "cross")]
            )
        ]
        questions = [text for q in questions_about(things) for text in (q.text, q.answer)]
        captions = [caption_of(things), caption_of(things[::3]), CAPTION_REQUEST]
        return [*questions, *captions, *COUNTS, *SIDES]

    def draw(self, rng: Random) -> PictureExample:
        """A picture with a question, or with the request of a caption."""
        things, question = random_question(rng.choice(KINDS), rng)
        pictures = (draw_scene(things, rng),)
        if rng.random() < self.question_frac:
            return PictureExample(pictures, question.text, question.answer)
        return PictureExample(pictures, CAPTION_REQUEST, caption_of(things))


@component
class TaskExamples:
    """Tasks with their reference answers; some answers are those of other tasks.

    Args:
        tasks: Tasks of one message each: pictures, and a text behind them.
        image_size: Pixels along each picture.
        random_frac: Fraction of the examples with the answer of a random task.
    """

    tasks: TaskSource
    image_size: PositiveInt
    random_frac: Probability = 0.0

    def texts(self) -> Sequence[str]:
        """Prompts and answers of the first tasks."""
        tasks = self.tasks.load()[:200]
        return [text for task in tasks for text in (_text(task), str(task.reference_answer))]

    def draw(self, rng: Random) -> PictureExample:
        """A random task with its answer, or with that of another one."""
        tasks = self.tasks.load()
        task = rng.choice(tasks)
        answered = rng.choice(tasks) if rng.random() < self.random_frac else task
        pictures = [media.pixels() for media in media_of(task.prompt) if isinstance(media, Image)]
        return PictureExample(tuple(pictures), _text(task), str(answered.reference_answer))


def _text(task: Task) -> str:
    messages: Any = task.prompt
    return "".join(part["text"] for part in messages[0]["content"] if part["type"] == "text")
