"""The world of `vlaa_thinker.py`: five kinds of questions about scenes, each with its own reward.

A number, the letter of a colour, a fraction, the box of a thing and the colours of all quarters are
asked for.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from random import Random

from grupo.core.component import component
from grupo.core.media import Image
from grupo.core.ranges import PositiveInt, Probability
from grupo.core.types import Rollout, Task
from grupo.rewards import PerRolloutReward
from grupo.tasks import LazyTasks, task_key
from grupo.tasks.scenes import (
    CAPTION_REQUEST,
    COLOURS,
    IMAGE_SIZE,
    NOTHING,
    QUARTER,
    SHAPES,
    Thing,
    caption_of,
    draw_scene,
    noise_pixels,
    picture_prompt,
    random_things,
)
from grupo.toy.picture_examples import PictureExample
from grupo.util.boxes import box_text
from grupo.util.rng import make_rng

KINDS = ("digit", "option", "math", "box", "caption")
LETTERS = dict(zip(COLOURS, "ABCD", strict=True))
COLOUR_REQUEST = "Which colours are in the four quarters?"
OPTIONS = ", ".join(f"{letter}: {colour}" for colour, letter in LETTERS.items())


FRACTIONS = ("1/2", "1/3", "2/3", "1/4", "3/4")


@dataclass(frozen=True)
class MixedQuestion:
    """A question about a scene, and its right answer."""

    kind: str
    text: str
    answer: str


def quarter_box(quarter: int) -> str:
    """The box of a quarter, in reading order.

    >>> quarter_box(3)
    '[16, 16, 32, 32]'
    """
    row, column = divmod(quarter, 2)
    return box_text([QUARTER * x for x in (column, row, column + 1, row + 1)])


BOXES = tuple(map(quarter_box, range(4)))


def colours_of(things: Sequence[Thing]) -> str:
    """The colours of the quarters in reading order, a short caption.

    >>> colours_of([Thing("red", "circle", 0), Thing("blue", "cross", 3)])
    'red, nothing, nothing, blue'
    """
    colours = {thing.quarter: thing.colour for thing in things}
    return ", ".join(colours.get(quarter, NOTHING) for quarter in range(4))


def ask(kind: str, things: Sequence[Thing], rng: Random) -> MixedQuestion:
    """A question of a kind, with one answer; things have different shapes."""
    thing = rng.choice(things)
    match kind:
        case "digit":
            return MixedQuestion(kind, "How many things are there?", str(len(things)))
        case "option":
            question = f"What colour is the {thing.shape}? {OPTIONS}"
            return MixedQuestion(kind, question, LETTERS[thing.colour])
        case "math":
            same = Fraction(sum(x.colour == thing.colour for x in things), len(things))
            return MixedQuestion(kind, f"What fraction is {thing.colour}?", str(same))
        case "box":
            question = f"Where is the {thing.shape}?"
            return MixedQuestion(kind, question, BOXES[thing.quarter])
        case _:
            return MixedQuestion(kind, COLOUR_REQUEST, colours_of(things))


def random_scene(rng: Random) -> Sequence[Thing]:
    """Two to four things of different shapes."""
    things = random_things(rng)
    shapes = rng.sample(SHAPES, len(things))
    return [Thing(x.colour, shape, x.quarter) for x, shape in zip(things, shapes, strict=True)]


def misread(things: Sequence[Thing], rng: Random) -> Sequence[Thing]:
    """The things with random colours."""
    return [Thing(rng.choice([*COLOURS]), x.shape, x.quarter) for x in things]


@component
class CaptionScore(PerRolloutReward):
    """The share of the quarters whose colours a text names as the column `caption` does."""

    @property
    def reward_range(self) -> tuple[float, float]:
        return (0.0, 1.0)

    def score(self, task: Task, rollout: Rollout) -> float:
        names = rollout.text.split(", ")
        truth = task.columns["caption"].split(", ")
        return sum(a == b for a, b in zip(names, truth, strict=False)) / len(truth)


@component
class MixedQuestions:
    """Questions of five kinds by turns: column `kind`; the true caption is in column `caption`.

    The reference answer of a caption has random colours, so that an answer can exceed it.

    Args:
        size: Number of tasks.
        seed: Seed of scenes and questions.
        kind: One of `KINDS` for one kind only.
        blind: Whether noise takes the place of each picture.
    """

    size: PositiveInt = 20_000
    seed: int = 500_000_000
    kind: str = ""
    blind: bool = False

    def load(self) -> Sequence[Task]:
        return LazyTasks(self.size, self._task)

    def _task(self, index: int) -> Task:
        rng = make_rng(self.seed, "mixed question", index)
        things = random_scene(rng)
        question = ask(self.kind or KINDS[index % len(KINDS)], things, rng)
        pixels = noise_pixels(rng) if self.blind else draw_scene(things, rng)
        prompt = picture_prompt([Image.from_pixels(pixels)], question.text)
        is_caption = question.kind == "caption"
        reference = colours_of(misread(things, rng)) if is_caption else question.answer
        columns = {
            "kind": question.kind,
            "caption": colours_of(things),
            "solution": expert_text(things, question),
        }
        return Task(task_key(prompt), prompt, reference, "scenes", columns)


def expert_text(things: Sequence[Thing], question: MixedQuestion) -> str:
    """An expert's long thoughts, which hesitate, and the right answer.

    >>> expert_text([Thing("red", "cross", 0)], MixedQuestion("digit", "How many things?", "1"))
    '<think>red cross, nothing, nothing, nothing wait red cross so</think><answer>1</answer>'
    """
    again = " ".join(map(str, things))
    thoughts = f"{caption_of(things)} wait {again} so"
    return f"<think>{thoughts}</think><answer>{question.answer}</answer>"


@component
class MixedExamples:
    """Full captions of scenes, and questions of five kinds with short thoughts and answers.

    Args:
        guess_frac: Fraction of the answers that are those of a random scene, or for captions have
            random colours.
        caption_frac: Fraction of the examples that are full captions, which teach the tower to see.
    """

    guess_frac: Probability = 0.5
    caption_frac: Probability = 0.5

    @property
    def image_size(self) -> int:
        """Pixels along each picture."""
        return IMAGE_SIZE

    def texts(self) -> Sequence[str]:
        """Texts with all words of prompts and answers."""
        scene = [Thing(*name, i) for i, name in enumerate(zip(COLOURS, SHAPES, strict=True))]
        rngs = [Random(i) for i in range(40)]
        questions = [ask(kind, scene, rng) for kind in KINDS for rng in rngs]
        texts = [text for q in questions for text in (q.text, q.answer, expert_text(scene, q))]
        return [*texts, expert_text(scene[::3], questions[0]), CAPTION_REQUEST, "look", *"1234"]

    def draw(self, rng: Random) -> PictureExample:
        """A picture with a question and an answer, or with its full caption."""
        things = random_scene(rng)
        pictures = (draw_scene(things, rng),)
        if rng.random() < self.caption_frac:
            return PictureExample(pictures, CAPTION_REQUEST, caption_of(things))
        kind = rng.choice(KINDS)
        question = ask(kind, things, rng)
        answer = question.answer
        if rng.random() < self.guess_frac:
            guess = misread(things, rng) if kind == "caption" else random_scene(rng)
            answer = ask(kind, guess, rng).answer
        text = f"<think>look</think><answer>{answer}</answer>"
        return PictureExample(pictures, question.text, text)
