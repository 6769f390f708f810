"""MediX-R1: open answers, scored by a judge, by similarity, by the modality and by their format.

Mullappilly et al., 2026, arXiv:2602.23363. Drawn slides have one or many cells of one of four
shapes in one of three modalities. The judge accepts each answer that has most of the words of the
true one, so that answers which leave a blank or name both counts mislead it.

Named before the first run of all seeds: the full reward leads to more correct answers than the
judge alone.

python recipes/vision/medix_r1.py FOLDER [FIRST_SEED END]
"""

import sys
from collections.abc import Sequence
from pathlib import Path
from random import Random

import numpy as np
import torch
from jaxtyping import UInt8

from grupo.core.component import component
from grupo.core.media import Image
from grupo.core.paper import Paper, Source
from grupo.core.ranges import PositiveInt
from grupo.core.types import Rollout, Task
from grupo.envs import RewardTerm, SingleTurn
from grupo.evidence.claims.paired_table import paired_table
from grupo.evidence.claims.stored_runs import Metrics, stored_runs
from grupo.evidence.claims.vision_arms import VisionArms, means_by_part
from grupo.methods.grpo import grpo
from grupo.rewards import ExactMatch, InsideTag, PerRolloutReward, RegexMatch, Reward
from grupo.rewards.open_answers import ColumnMatch, GuardedAnswer, SimilarText, TextBefore
from grupo.rollouts.evaluate import HasActor
from grupo.tasks import LazyTasks, task_key
from grupo.tasks.scenes import IMAGE_SIZE, QUARTER, SHAPES, noise_pixels, picture_prompt, shape_mask
from grupo.toy.picture_examples import PictureExample
from grupo.toy.vision_lm import ToyVisionLM
from grupo.util.importing import load_module_file
from grupo.util.rng import make_rng

PAPER = Paper(
    title="MediX-R1: Open Ended Medical Reinforcement Learning",
    use="Answers are free texts, a judge scores them, and the judge can be misled.",
    kind="reward",
    tags=("multimodal", "reward"),
    catalogue=("medix-r1",),
    source=Source("code", "mbzuai-oryx/MediX-R1, training/examples/reward_function/medical.py"),
    checked=("golden", "run"),
    missing=("A model as the judge and one of embeddings, which the components take.",),
    deviations=(
        "The answer of the task has no modality in front: the modality is a column.",
        "The released code removes spaces around <, > and / first; answers here have none.",
    ),
    shown=(
        "docs/vision_shown/medix_r1.md#results",
        "tests/recipes/test_vision_medix_r1.py::test_the_full_reward_of_three_answers",
    ),
)
SEEDS = 8
STEPS = 40
QUESTION = "What is on the slide?"
COUNTS = ("single", "many")
CELLS = dict[str, str](zip(("round", "square", "spiked", "forked"), SHAPES, strict=True))
MODALITIES = {  # colours of background and cells
    "<XRAY>": ((30, 30, 30), (220, 220, 220)),
    "<STAIN>": ((235, 190, 215), (110, 40, 140)),
    "<FLUO>": ((10, 20, 40), (60, 230, 90)),
}
FORMAT = r"<thinking>.*</thinking>\s*<answer>.*</answer>\s*\Z"
_answer = InsideTag("answer")


def draw_slide(rng: Random) -> tuple[UInt8[np.ndarray, "32 32 3"], str, str]:
    """A picture of cells, its modality and the finding."""
    modality, count, cell = rng.choice([*MODALITIES]), rng.choice(COUNTS), rng.choice([*CELLS])
    background, colour = MODALITIES[modality]
    noise = np.random.default_rng(rng.getrandbits(32))
    pixels = noise.normal(background, 10.0, (IMAGE_SIZE, IMAGE_SIZE, 3))
    for quarter in rng.sample(range(4), 1 if count == "single" else rng.randint(3, 4)):
        size = rng.randint(11, 13)
        y, x = (QUARTER * i + rng.randint(1, QUARTER - size - 1) for i in divmod(quarter, 2))
        pixels[y : y + size, x : x + size][shape_mask(CELLS[cell], size)] = colour
    return np.clip(pixels, 0, 255).astype(np.uint8), modality, f"{count} {cell} cells"


def reply_of(modality: str, answer: str) -> str:
    """A reply in the format."""
    return f"{modality}<thinking>cells</thinking><answer>{answer}</answer>"


@component
class Slides:
    """Drawn slides with the finding as the answer and the modality in a column.

    Args:
        size: Number of tasks.
        seed: Seed of the slides.
        blind: Whether noise takes the place of each picture.
    """

    size: PositiveInt
    seed: int
    blind: bool = False

    def load(self) -> Sequence[Task]:
        return LazyTasks(self.size, self._task)

    def _task(self, index: int) -> Task:
        rng = make_rng(self.seed, "slides", index)
        pixels, modality, finding = draw_slide(rng)
        pixels = noise_pixels(rng) if self.blind else pixels
        prompt = picture_prompt([Image.from_pixels(pixels)], QUESTION)
        return Task(task_key(prompt), prompt, finding, "slides", {"modality": modality})


@component
class SlideExamples:
    """Replies to slides: a half names the finding; others leave a blank, hedge, or guess."""

    image_size: PositiveInt = IMAGE_SIZE

    def texts(self) -> Sequence[str]:
        """Texts with all words of prompts and answers."""
        words = " ".join([*COUNTS, *CELLS, "or", "__", "cells"])
        return [QUESTION, *(reply_of(modality, words) for modality in MODALITIES)]

    def draw(self, rng: Random) -> PictureExample:
        """A slide with a reply."""
        pixels, modality, finding = draw_slide(rng)
        count, cell, cells = finding.split()
        guess = f"{rng.choice(COUNTS)} {rng.choice([*CELLS])} {cells}"
        evasions = (f"{count} __ {cells}", f"{' or '.join(COUNTS)} {cell} {cells}", guess)
        answer = finding if rng.random() < 0.55 else rng.choice(evasions)
        return PictureExample((pixels,), QUESTION, reply_of(modality, answer))


@component
class LenientJudge(PerRolloutReward):
    """1 if most words of the reference answer are in the answer, whatever else is.

    Args:
        share: The share of the words that is enough.
    """

    share: float = 0.6

    def score(self, task: Task, rollout: Rollout) -> float:
        words, truth = (_answer(rollout.text) or "").split(), str(task.reference_answer).split()
        return float(sum(word in words for word in truth) / len(truth) >= self.share)


def full_terms(judge: Reward, similar: Reward) -> tuple[RewardTerm, ...]:
    """0.9 (0.575 judge + 0.375 similarity + 0.05 modality) + 0.1 format, of scores 0 or 1."""
    return (
        RewardTerm("judge", judge, 0.9 * 0.575),
        RewardTerm("similar", similar, 0.9 * 0.375),
        RewardTerm("modality", ColumnMatch("modality", TextBefore("<thinking>")), 0.9 * 0.05),
        RewardTerm("format", RegexMatch(FORMAT), 0.1),
    )


FULL = full_terms(GuardedAnswer(LenientJudge()), GuardedAnswer(SimilarText()))
REWARDS = {
    "judge": (RewardTerm("judge", LenientJudge()),),
    "full reward": FULL,
}
SCORES = SingleTurn(
    (
        RewardTerm("correct", ExactMatch(_answer)),
        RewardTerm("judge", LenientJudge(), 0.0),
        RewardTerm("blank", RegexMatch("__"), 0.0),
        RewardTerm("hedged", RegexMatch(" or "), 0.0),
    )
)
PARTS = {name: Slides(200, 900_000_000, name == "blind").load() for name in ("seen", "blind")}
COLUMNS = ("seen/correct", "seen/judge", "seen/blank", "seen/hedged", "blind/correct")


def evaluate(policy: HasActor, seed: int) -> Metrics:
    """Shares of correct, accepted, blank and hedged answers on held-out slides."""
    names = ("correct", "judge", "blank", "hedged")
    return means_by_part(policy, SCORES, PARTS, names, attempts=2, seed=seed)


def main(folder: Path, first: int = 0, end: int = SEEDS) -> None:
    """Train each arm with each seed and print the table."""
    torch.set_num_threads(1)
    tags = (*MODALITIES, "<thinking>", "</thinking>", "<answer>", "</answer>")
    model = ToyVisionLM(examples=SlideExamples(), tags=tags, max_steps=250)
    world = VisionArms(model, evaluate, steps=STEPS, max_new_tokens=14, prompts_per_step=16)
    tasks, method = Slides(50_000, 500_000_000), grpo(group_size=8, kl_coef=0.0)
    trained = {name: world.trained(SingleTurn(x), tasks, method) for name, x in REWARDS.items()}
    runs = stored_runs(
        folder / "runs.jsonl", {"beginner": world.beginner, **trained}, range(first, end)
    )
    print(paired_table(runs, COLUMNS, "judge"))


if __name__ == "__main__":
    load_module_file(Path(__file__)).main(Path(sys.argv[1]), *map(int, sys.argv[2:]))
