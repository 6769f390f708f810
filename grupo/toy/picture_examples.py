"""Supervised examples of pictures with prompts and answers, for toy vision-language models."""

from collections.abc import Sequence
from dataclasses import dataclass
from random import Random
from typing import Protocol

import numpy as np
from jaxtyping import UInt8

from grupo.core.component import component
from grupo.core.ranges import Probability
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
