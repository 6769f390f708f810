"""The world of `ton.py`: easy and hard questions about scenes, with thoughts.

Easy questions are for the colour of a thing, hard ones for the number of things of a colour, where
the thoughts count quarter by quarter. Supervised examples are imperfect: 4 of 10 answers are
guesses, whatever the thoughts state.
"""

from collections.abc import Sequence
from random import Random

from grupo.core.component import component
from grupo.core.media import Image
from grupo.core.ranges import PositiveInt, Probability
from grupo.core.types import Task
from grupo.rollouts.samplers import without_thoughts
from grupo.tasks import LazyTasks, task_key
from grupo.tasks.scenes import (
    COLOURS,
    COUNTS,
    IMAGE_SIZE,
    NOTHING,
    SHAPES,
    Thing,
    draw_scene,
    noise_pixels,
    picture_prompt,
)
from grupo.toy.picture_examples import PictureExample
from grupo.util.rng import make_rng

PLACES = ("upper left", "upper right", "lower left", "lower right")
KINDS = ("easy", "hard")
COUNTED = COUNTS[:4]  # up to three things of a colour


def random_question(kind: str, rng: Random) -> tuple[dict[int, Thing], str, str]:
    """Things by quarter, a question about them and its answer.

    Args:
        kind: "easy" for a colour at a place, "hard" for the number of things of a colour.
        rng: Draws the scene.
    """
    colour, *others = rng.sample([*COLOURS], len(COLOURS))
    count = rng.randrange(len(COUNTED))
    places = rng.sample(range(len(PLACES)), rng.randint(max(2, count), len(PLACES)))
    colours = [colour] * count + [rng.choice(others) for _ in places[count:]]
    things = {
        place: Thing(name, rng.choice(SHAPES), place)
        for place, name in zip(places, colours, strict=True)
    }
    if kind == "hard":
        return things, f"How many things are {colour}?", COUNTED[count]
    place = rng.choice(places)
    return things, f"What colour is {PLACES[place]}?", things[place].colour


def thoughts(things: dict[int, Thing], question: str) -> str:
    """The colours by quarter; for a count each with the number of things so far.

    >>> things = {0: Thing("red", "cross", 0), 2: Thing("red", "circle", 2)}
    >>> thoughts(things, "How many things are red?")
    'red one, nothing one, red two, nothing two'
    >>> thoughts(things, "What colour is upper left?")
    'red, nothing, red, nothing'
    """
    names = [things[i].colour if i in things else NOTHING for i in range(len(PLACES))]
    if not question.startswith("How many"):
        return ", ".join(names)
    asked = question.removesuffix("?").split()[-1]
    counts = [COUNTS[names[: i + 1].count(asked)] for i in range(len(names))]
    return ", ".join(f"{name} {count}" for name, count in zip(names, counts, strict=True))


@component
class EasyAndHardQuestions:
    """Questions of both kinds by turns; column `kind`.

    Args:
        size: Number of tasks.
        seed: Seed of scenes and questions.
        kind: "easy" or "hard" for one kind only.
        blind: Whether noise takes the place of each picture.
    """

    size: PositiveInt = 50_000
    seed: int = 500_000_000
    kind: str = ""
    blind: bool = False

    def load(self) -> Sequence[Task]:
        return LazyTasks(self.size, self._task)

    def _task(self, index: int) -> Task:
        rng = make_rng(self.seed, "easy and hard", index)
        kind = self.kind or KINDS[index % 2]
        things, question, answer = random_question(kind, rng)
        pixels = noise_pixels(rng) if self.blind else draw_scene([*things.values()], rng)
        prompt = picture_prompt([Image.from_pixels(pixels)], question)
        return Task(task_key(prompt), prompt, answer, "scenes", {"kind": kind})


@component
class ThoughtfulExamples:
    """Questions of both kinds with thoughts and answers, some of them wrong.

    Args:
        dropout: Probability that the thoughts are dropped.
        guess_frac: Fraction of the answers that are guesses.
    """

    dropout: Probability = 0.0
    guess_frac: Probability = 0.4

    @property
    def image_size(self) -> int:
        """Pixels along each picture."""
        return IMAGE_SIZE

    def texts(self) -> Sequence[str]:
        """Texts with all words of prompts and answers."""
        names = [f"{text}," for text in (*COLOURS, *COUNTED, NOTHING)]
        places = [f"What colour is {place}?" for place in PLACES]
        counts = [f"How many things are {colour}?" for colour in COLOURS]
        words = [f"{name} zero" for name in (*COLOURS, NOTHING)]
        return [*names, *COLOURS, *COUNTED, NOTHING, *places, *counts, *words]

    def draw(self, rng: Random) -> PictureExample:
        """A picture with a question and its answer."""
        kind = rng.choice(KINDS)
        things, question, answer = random_question(kind, rng)
        if rng.random() < self.guess_frac:
            answer = rng.choice([*COLOURS] if kind == "easy" else COUNTED)
        text = f"<think>{thoughts(things, question)}</think><answer>{answer}</answer>"
        if rng.random() < self.dropout:
            text = without_thoughts(text)
        return PictureExample((draw_scene([*things.values()], rng),), question, text)
