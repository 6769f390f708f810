"""The world of `docs/vision_shown/landed_methods.md`: answers behind descriptions of scenes.

The questions are for a colour or a shape in a drawn scene. An answer describes the scene inside
<think>, and names a colour or a shape inside <answer>. Supervised examples are imperfect: in 3 of
10 a thing is described wrongly, and 4 of 10 answers are guesses, whatever the description states.
"""

from collections.abc import Sequence
from dataclasses import replace
from random import Random

from grupo.core.component import component
from grupo.core.media import Image
from grupo.core.ranges import PositiveInt, Probability
from grupo.core.types import Rollout, Task
from grupo.rewards import InsideTag, PerRolloutReward
from grupo.tasks.base import LazyTasks, task_key
from grupo.tasks.scenes import (
    COLOURS,
    IMAGE_SIZE,
    SHAPES,
    SceneQuestion,
    Thing,
    draw_scene,
    noise_pixels,
    picture_prompt,
    questions_about,
    random_question,
)
from grupo.toy.picture_examples import PictureExample
from grupo.util.rng import make_rng

OPTIONS = {"colour": tuple(COLOURS), "shape": SHAPES}
TAGS = tuple(f"<{mark}{tag}>" for tag in ("think", "answer", "reflection") for mark in ("", "/"))


def description_of(things: Sequence[Thing]) -> str:
    """The things of a scene in reading order.

    >>> description_of([Thing("red", "circle", 0), Thing("blue", "cross", 3)])
    'red circle, blue cross'
    """
    return ", ".join(map(str, things))


def implied_answer(description: str, question: str) -> str:
    """The answer to a question that a description implies; "" if it implies none.

    >>> implied_answer("red circle, blue cross", "What colour is the cross?")
    'blue'
    """
    names = [name.split() for name in description.split(", ")][:4]
    things = [Thing(x[0], x[1], quarter) for quarter, x in enumerate(names) if len(x) == 2]
    return next((q.answer for q in questions_about(things) if q.text == question), "")


@component
class Consistent(PerRolloutReward):
    """1 if the answer is the one that the last description implies."""

    def score(self, task: Task, rollout: Rollout) -> float:
        description, answer = InsideTag("think")(rollout.text), InsideTag("answer")(rollout.text)
        return float(implied_answer(description or "", task.columns["question"]) == (answer or "-"))


@component
class DescribedScenes:
    """Questions for a colour or a shape of drawn scenes, by turns.

    Args:
        size: Number of tasks.
        seed: Seed of scenes and questions.
        blind: Whether noise takes the place of each picture.
    """

    size: PositiveInt = 512
    seed: int = 0
    blind: bool = False

    def load(self) -> Sequence[Task]:
        return LazyTasks(self.size, self._task)

    def _task(self, index: int) -> Task:
        rng = make_rng(self.seed, "described scene", index)
        things, question = random_question([*OPTIONS][index % len(OPTIONS)], rng)
        pixels = noise_pixels(rng) if self.blind else draw_scene(things, rng)
        prompt = picture_prompt([Image.from_pixels(pixels)], question.text)
        columns = {"question": question.text, "options": OPTIONS[question.kind]}
        return Task(task_key(prompt), prompt, question.answer, "scenes", columns)


def described_wrongly(things: Sequence[Thing], rng: Random) -> Sequence[Thing]:
    """The things, of which one has another random name."""
    wrong = rng.randrange(len(things))
    name = {"colour": rng.choice([*COLOURS]), "shape": rng.choice(SHAPES)}
    return [replace(x, **name) if i == wrong else x for i, x in enumerate(things)]


@component
class DescribedExamples:
    """Questions with descriptions and answers, some of them wrong.

    Args:
        wrong_frac: Fraction of the descriptions in which a thing has a random name.
        guess_frac: Fraction of the answers that are guesses.
    """

    wrong_frac: Probability = 0.3
    guess_frac: Probability = 0.4

    @property
    def image_size(self) -> int:
        """Pixels along each picture."""
        return IMAGE_SIZE

    def texts(self) -> Sequence[str]:
        """Texts with all words of prompts and answers."""
        things = [Thing(*name, i) for i, name in enumerate(zip(COLOURS, SHAPES, strict=True))]
        questions = [text for q in questions_about(things) for text in (q.text, q.answer)]
        return [*questions, description_of(things)]

    def draw(self, rng: Random) -> PictureExample:
        """A picture with a question and its answer."""
        things, question = random_question(rng.choice([*OPTIONS]), rng)
        answer = self.attempt(things, question, rng)
        return PictureExample((draw_scene(things, rng),), question.text, answer)

    def attempt(self, things: Sequence[Thing], question: SceneQuestion, rng: Random) -> str:
        """A description and an answer, as good as the supervised examples are."""
        if rng.random() < self.wrong_frac:
            things = described_wrongly(things, rng)
        description = description_of(things)
        answer = implied_answer(description, question.text)
        if not answer or rng.random() < self.guess_frac:
            answer = rng.choice(OPTIONS[question.kind])
        return f"<think>{description}</think><answer>{answer}</answer>"
