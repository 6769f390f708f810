"""VL-Rethinker on pictures: rollouts are forced to rethink, in a world of fast and slow answers.

Wang et al., 2025, arXiv:2504.08837; `grupo/methods/vl_rethinker.py` has its record. Half of the
questions are easy, for the colour of a thing in a scene; half are hard, for the number of things of
a colour. The beginner answers at once: easy questions mostly right, hard ones by a guess. It can
rethink, with thoughts that count quarter by quarter, but without a request it seldom does.

Named before the first run of all seeds: the accuracy on held-out hard questions (`hard/correct`) of
VL-Rethinker minus that of GRPO, after as many questions and first answers. "not forced" has all of
the method but the triggers. No trigger is forced at evaluation.

python recipes/vision/vl_rethinker.py FOLDER [FIRST_SEED END]
"""

import sys
from collections.abc import Sequence
from pathlib import Path
from random import Random

import torch
from easy_and_hard import COUNTED, KINDS, PLACES, EasyAndHardQuestions, random_question, thoughts

from grupo.algo.minibatches import Updates
from grupo.core.component import component
from grupo.core.ranges import Probability
from grupo.envs import RewardTerm, SingleTurn
from grupo.evidence.claims.paired_table import paired_table
from grupo.evidence.claims.stored_runs import Metrics, stored_runs
from grupo.evidence.claims.vision_arms import VisionArms, means_by_part
from grupo.method import Method
from grupo.methods.grpo import grpo
from grupo.methods.vl_rethinker import vl_rethinker
from grupo.rewards import ExactMatch, InsideTag, RegexMatch
from grupo.rollouts.evaluate import HasActor
from grupo.rollouts.samplers import ForcedRethinking, GroupSampler, RandomTrigger
from grupo.tasks.scenes import COLOURS, IMAGE_SIZE, NOTHING, draw_scene
from grupo.toy.picture_examples import PictureExample
from grupo.toy.vision_lm import ToyVisionLM
from grupo.util.importing import load_module_file

REQUEST = " Think twice."
TRIGGER = "Wait"
TAGS = ("<think>", "</think>", "<answer>", "</answer>", TRIGGER)


@component
class RethoughtExamples:
    """Questions with a fast answer, and with a second, slow one if the question requests it.

    Args:
        requested: Probability that the question requests a second answer.
        unrequested: Probability of a second answer without a request.
        easy_guesses: Fraction of the fast answers to easy questions that are guesses.
        hard_guesses: Fraction of the fast answers to hard questions that are guesses.
    """

    requested: Probability = 0.5
    unrequested: Probability = 0.01
    easy_guesses: Probability = 0.2
    hard_guesses: Probability = 1.0

    @property
    def image_size(self) -> int:
        """Pixels along each picture."""
        return IMAGE_SIZE

    def texts(self) -> Sequence[str]:
        """Texts with all words of prompts and answers."""
        names = [f"{text}," for text in (*COLOURS, *COUNTED, NOTHING)]
        places = [f"What colour is {place}?{REQUEST}" for place in PLACES]
        counts = [f"How many things are {colour}?{REQUEST}" for colour in COLOURS]
        words = [f"{name} zero" for name in (*COLOURS, NOTHING)]
        return [*names, *COLOURS, *COUNTED, NOTHING, *places, *counts, *words]

    def draw(self, rng: Random) -> PictureExample:
        """A picture with a question and its answer or answers."""
        kind = rng.choice(KINDS)
        things, question, answer = random_question(kind, rng)
        guesses = self.easy_guesses if kind == "easy" else self.hard_guesses
        options = [*COLOURS] if kind == "easy" else COUNTED
        first = rng.choice(options) if rng.random() < guesses else answer
        text = f"<answer>{first}</answer>"
        is_requested = rng.random() < self.requested
        if is_requested or rng.random() < self.unrequested:
            text += f"{TRIGGER}<think>{thoughts(things, question)}</think><answer>{answer}</answer>"
        picture = draw_scene([*things.values()], rng)
        return PictureExample((picture,), question + REQUEST * is_requested, text)


MODEL = ToyVisionLM(RethoughtExamples(), tags=TAGS, tower_layers=2, text_layers=3, max_steps=1200)
STEPS, MAX_NEW_TOKENS, GROUP_SIZE = 40, 28, 8
ENV = SingleTurn(
    (
        RewardTerm("correct", ExactMatch(InsideTag("answer"))),
        RewardTerm("rethinks", RegexMatch(TRIGGER), weight=0.0),
    )
)
PARTS = {
    **{kind: EasyAndHardQuestions(120, 900_000_000, kind) for kind in KINDS},
    "blind": EasyAndHardQuestions(120, 900_000_000, blind=True),
}
GRPO = grpo(group_size=GROUP_SIZE, kl_coef=0.0)


def evaluate(policy: HasActor, seed: int) -> Metrics:
    """Accuracy, rethinking and lengths on held-out questions of both kinds, without triggers."""
    parts = {name: tasks.load() for name, tasks in PARTS.items()}
    names = ("correct", "rethinks", "length")
    means = means_by_part(policy, ENV, parts, names, attempts=2, seed=seed)
    return {
        **means,
        "accuracy": (means["easy/correct"] + means["hard/correct"]) / 2,
        "selective": means["hard/rethinks"] - means["easy/rethinks"],
    }


WORLD = VisionArms(MODEL, evaluate, STEPS, MAX_NEW_TOKENS, prompts_per_step=16)


def rethinker(chance: float = 0.65) -> Method:
    """VL-Rethinker with one update per step.

    Args:
        chance: Probability that a rollout is forced to rethink.
    """
    sampler = ForcedRethinking(
        GroupSampler(GROUP_SIZE),
        RandomTrigger(((TRIGGER, 1.0),), if_correct="", if_wrong=""),
        chance=chance,
        cut_chance=0.0,  # nothing precedes the first answer
        min_tokens=1,
    )
    return vl_rethinker(GROUP_SIZE).replace(sampler=sampler, updates=Updates())


ARMS = {
    "beginner": WORLD.beginner,
    "GRPO": WORLD.trained(ENV, EasyAndHardQuestions(), GRPO),
    "not forced": WORLD.trained(ENV, EasyAndHardQuestions(), rethinker(0.0)),
    "VL-Rethinker": WORLD.trained(ENV, EasyAndHardQuestions(), rethinker()),
}
COLUMNS = ("accuracy", "easy/correct", "hard/correct", "easy/rethinks", "hard/rethinks")


def main(folder: Path, first_seed: int = 0, end: int = 8) -> None:
    """Train each arm with each seed and print the tables."""
    torch.set_num_threads(1)
    runs = stored_runs(folder / "runs.jsonl", ARMS, range(first_seed, end))
    print(paired_table(runs, COLUMNS, "GRPO"))
    print(paired_table(runs, ["blind/correct", "easy/length", "hard/length"], "GRPO"))


if __name__ == "__main__":
    # a component must be in a module that can be imported again
    load_module_file(Path(__file__)).main(Path(sys.argv[1]), *map(int, sys.argv[2:]))
