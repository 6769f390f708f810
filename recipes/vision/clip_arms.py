"""A world of the pages in `docs/vision_shown/` on clips: the span of time in which a thing is seen.

Supervised examples are imperfect: a quarter of the answers lack the thoughts, and a start or an end
is wrong in half of all.

python recipes/vision/clip_arms.py      # writes the model that all arms start from
"""

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from random import Random

from grupo.core.component import component
from grupo.core.ranges import PositiveInt, Probability
from grupo.envs import RewardTerm, SingleTurn
from grupo.evidence.claims.paired_table import paired_table
from grupo.evidence.claims.stored_runs import Metrics, stored_runs
from grupo.evidence.claims.tiny_lm import mean_terms, trained
from grupo.evidence.claims.vision_arms import vision_policy, vision_recipe
from grupo.method import Method
from grupo.methods.grpo import grpo
from grupo.recipe import Recipe
from grupo.rewards import TimeSpanFormat, TimeSpanIoU
from grupo.rollouts.evaluate import HasActor
from grupo.tasks.base import TaskSource
from grupo.tasks.clips import (
    FRAME_SIZE,
    ClipSpans,
    MovingThing,
    draw_clip,
    random_clip,
    span_question,
)
from grupo.tasks.scenes import COLOURS, SHAPES
from grupo.toy.picture_examples import PictureExample
from grupo.toy.vision_lm import ToyVisionLM, ensure_trained_vision

FRAMES = 8
STEPS = 40
THOUGHTS = "<think></think>"
START, MIDDLE, END = '<answer>{"start_time": "', '", "end_time": "', '"}</answer>'
TERMS = (
    RewardTerm("tiou", TimeSpanIoU(), weight=0.5),
    RewardTerm("format", TimeSpanFormat(), weight=0.5),
)
ENV = SingleTurn(TERMS)
HELD_OUT = ClipSpans(128, seed=900_000_000)
BLIND = ClipSpans(64, seed=900_000_000, blind=True)
POOL = ClipSpans(256, seed=500_000_000)
GRPO = grpo(group_size=8, kl_coef=0.0)


@component
class SpanExamples:
    """Clips with questions for a time span, some answered wrongly.

    Args:
        wrong_frac: Fraction of the answers in which a time is random.
        bare_frac: Fraction of the answers without the block of thoughts.
        frames: Number of frames of a clip.
    """

    wrong_frac: Probability = 0.5
    bare_frac: Probability = 0.25
    frames: PositiveInt = FRAMES

    @property
    def image_size(self) -> int:
        """Pixels along each frame."""
        return FRAME_SIZE

    def texts(self) -> Sequence[str]:
        """Texts with all words of prompts and answers."""
        names = zip(COLOURS, SHAPES, strict=True)
        things = [MovingThing(*name, 0, 0, 2, rightwards=True) for name in names]
        return [*map(span_question, things), span_text((0, 1))]

    def draw(self, rng: Random) -> PictureExample:
        """A clip with a question and its answer."""
        things = random_clip(self.frames, rng)
        thing = rng.choice(things)
        times = [thing.start, thing.end]
        if rng.random() < self.wrong_frac:
            times[rng.randrange(2)] = rng.randint(0, self.frames)
        answer = span_text(times)
        if rng.random() < self.bare_frac:
            answer = answer.removeprefix(THOUGHTS)
        pictures = tuple(draw_clip(things, self.frames, rng))
        return PictureExample(pictures, span_question(thing), answer)


def span_text(span: Sequence[int]) -> str:
    """An answer with a span.

    >>> span_text((2, 6))
    '<think></think><answer>{"start_time": "2", "end_time": "6"}</answer>'
    """
    return f"{THOUGHTS}{START}{span[0]}{MIDDLE}{span[1]}{END}"


MODEL = ToyVisionLM(SpanExamples(), tags=(THOUGHTS, START, MIDDLE, END), max_steps=700)
MAX_NEW_TOKENS = 8
BEGINNER = vision_policy(MODEL, MAX_NEW_TOKENS)


def clip_recipe(method: Method, seed: int, tasks: TaskSource = POOL) -> Recipe:
    """Train the beginner on 16 questions a step, with tower and projector frozen.

    Args:
        method: The method.
        seed: Seed of the run.
        tasks: The questions.
    """
    recipe = vision_recipe(
        MODEL,
        ENV,
        tasks,
        method,
        steps=STEPS,
        seed=seed,
        max_new_tokens=MAX_NEW_TOKENS,
        prompts_per_step=16,
    )
    return recipe.replace(eval_tasks=HELD_OUT)


def evaluated(policy: HasActor, seed: int) -> Metrics:
    """Means over held-out questions, and the score with noise in place of the frames."""
    seen = mean_terms(policy, ENV, HELD_OUT.load(), attempts=2, seed=seed)
    blind = mean_terms(policy, ENV, BLIND.load(), attempts=2, seed=seed)
    return {"tiou": seen["tiou"], "format": seen["format"], "blind": blind["tiou"]}


def arm(recipe: Callable[[int], Recipe]) -> Callable[[int], Metrics]:
    """Trains a recipe with a seed and returns the metrics of the policy."""
    return lambda seed: evaluated(trained(recipe(seed)).policy, seed)


SHARED: Mapping[str, Callable[[int], Metrics]] = {
    "beginner": lambda seed: evaluated(BEGINNER.build(), seed),
    "GRPO": arm(lambda seed: clip_recipe(GRPO, seed)),
}


def print_table(arms: Mapping[str, Callable[[int], Metrics]], arguments: Sequence[str]) -> None:
    """Run the shared arms and others, and print the table against GRPO.

    Args:
        arms: Further arms by name.
        arguments: The folder of stored runs, and perhaps the first seed and the end of the seeds.
    """
    folder, *seeds = arguments
    ensure_trained_vision(MODEL)
    runs = stored_runs(
        Path(folder) / "runs.jsonl", {**SHARED, **arms}, range(*map(int, seeds or ["8"]))
    )
    print(paired_table(runs, ["tiou", "format", "blind"], "GRPO"))


if __name__ == "__main__":
    ensure_trained_vision(MODEL)
