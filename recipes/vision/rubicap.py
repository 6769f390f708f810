"""RubiCap: captions are rewarded by rubrics of what the beginner's caption lacks.

Huang et al., 2026, arXiv:2603.09160. Five captioners of differing skill describe drawn scenes of
three or four things. A rubric has the things that two of them name and the beginner does not, and
those that the beginner alone names.

Named before the first run of all seeds: captions name more of a scene's things with the rubric's
reward than with ROUGE-L to the caption of the best captioner.

python recipes/vision/rubicap.py FOLDER [FIRST_SEED END]
"""

import sys
from collections.abc import Sequence
from dataclasses import replace
from functools import cache
from pathlib import Path
from random import Random

import torch

from grupo.core.component import component
from grupo.core.media import Image
from grupo.core.paper import Paper, Source
from grupo.core.ranges import PositiveInt, Probability
from grupo.core.types import Rollout, Task
from grupo.envs import RewardTerm, SingleTurn
from grupo.evidence.claims.paired_table import paired_table
from grupo.evidence.claims.stored_runs import Metrics, stored_runs
from grupo.evidence.claims.vision_arms import VisionArms, means_by_part, vision_policy
from grupo.methods.grpo import grpo
from grupo.rewards import CheckedRubric, PerRolloutReward, RougeL
from grupo.rewards.judges import RubricColumn
from grupo.rollouts.evaluate import HasActor, run_rollouts
from grupo.tasks import InMemoryTasks, task_key
from grupo.tasks.deficit_rubrics import CRITICAL, IMPORTANT, deficit_rubric
from grupo.tasks.scenes import (
    CAPTION_REQUEST,
    COLOURS,
    IMAGE_SIZE,
    SHAPES,
    Thing,
    draw_scene,
    noise_pixels,
    picture_prompt,
)
from grupo.toy.picture_examples import PictureExample
from grupo.toy.vision_lm import ToyVisionLM, ensure_trained_vision
from grupo.util.importing import load_module_file
from grupo.util.rng import derive_key, make_rng

PAPER = Paper(
    title="RubiCap: Rubric-Guided Reinforcement Learning for Dense Image Captioning",
    use="Captions and other open answers, of which several models agree on the important facts.",
    kind="reward",
    tags=("multimodal", "reward"),
    catalogue=("rubicap",),
    source=Source("third_party", "the abstract, and reviews that describe rubrics and weights"),
    checked=("golden", "run"),
    missing=("A model that writes rubrics; `Rubric` with `RubricColumn` has a model that judges.",),
    deviations=(
        "Facts are compared by name: a consensus and its deficits are computed, not written.",
        "Rubrics are written once; tasks without a deficit are left out.",
    ),
    shown=(
        "docs/vision_shown/rubicap.md#results",
        "tests/tasks/test_deficit_rubrics.py::test_two_of_five_make_a_consensus",
    ),
)
SEEDS = 8
STEPS = 40
NUM_TASKS = 640
NAMES = tuple(f"{colour} {shape}" for colour in COLOURS for shape in SHAPES)
SKILLS = (0.95, 0.85, 0.75, 0.65, 0.55)  # probabilities that captioners name a thing correctly


def random_scene(rng: Random) -> Sequence[Thing]:
    """Three or four things of different names, in different quarters."""
    quarters = sorted(rng.sample(range(4), rng.randint(3, 4)))
    names = [name.split() for name in rng.sample(NAMES, len(quarters))]
    return [Thing(name[0], name[1], i) for name, i in zip(names, quarters, strict=True)]


def named_things(caption: str) -> list[str]:
    """The things that a caption names, each once."""
    return [name for name in dict.fromkeys(caption.split(", ")) if name in NAMES]


def imperfect_names(things: Sequence[Thing], skill: float, rng: Random) -> list[str]:
    """The names of things; each is right with a probability, else omitted or random."""
    names = [str(x) if rng.random() < skill else rng.choice(["", *NAMES]) for x in things]
    return [name for name in dict.fromkeys(names) if name] or [rng.choice(NAMES)]


@component
class CaptionExamples:
    """Scenes with imperfect captions.

    Args:
        skill: Probability that a caption names a thing correctly.
    """

    skill: Probability = 0.6
    image_size: PositiveInt = IMAGE_SIZE

    def texts(self) -> Sequence[str]:
        """Texts with all words of prompts and answers."""
        return [CAPTION_REQUEST, ", ".join(NAMES)]

    def draw(self, rng: Random) -> PictureExample:
        """A scene with a caption."""
        things = random_scene(rng)
        caption = ", ".join(imperfect_names(things, self.skill, rng))
        return PictureExample((draw_scene(things, rng),), CAPTION_REQUEST, caption)


def scene_task(seed: int, index: int, *, blind: bool = False) -> Task:
    """A scene with the names of its things, and those that each captioner states, in columns."""
    rng = make_rng(seed, "captions", index)
    things = random_scene(rng)
    pixels = noise_pixels(rng) if blind else draw_scene(things, rng)
    committee = [imperfect_names(things, skill, rng) for skill in SKILLS]
    prompt = picture_prompt([Image.from_pixels(pixels)], CAPTION_REQUEST)
    columns = {"things": [*map(str, things)], "committee": committee}
    return Task(task_key(prompt), prompt, ", ".join(committee[0]), "scenes", columns)


def is_met(criterion: str, caption: str) -> bool:
    """Whether a caption states, or does not state, the thing of a criterion."""
    kind, _, fact = criterion.partition(": ")
    return (fact in named_things(caption)) != kind.endswith("not state")


def severity(fact: str, place: int) -> float:
    """The first fact of a consensus is critical, the others are important."""
    return IMPORTANT if place else CRITICAL


@component
class NamedThings(PerRolloutReward):
    """The share of the scene's things that a caption names, and the precision of its names."""

    def score(self, task: Task, rollout: Rollout) -> dict[str, float]:
        names, truth = named_things(rollout.text), task.columns["things"]
        right = len({*names} & {*truth})
        return {"score": right / len(truth), "precision": right / max(len(names), 1)}


SCORES = SingleTurn((RewardTerm("recall", NamedThings()), RewardTerm("rouge", RougeL(), 0.0)))
REWARDS = {"ROUGE-L": RougeL(), "rubric": CheckedRubric(RubricColumn("rubric"), is_met)}
PARTS = {
    part: [scene_task(900_000_000, i, blind=part == "blind") for i in range(150)]
    for part in ("seen", "blind")
}
COLUMNS = ("seen/recall", "seen/recall/precision", "seen/rouge", "seen/length", "blind/recall")
MODEL = ToyVisionLM(examples=CaptionExamples(), max_steps=400)
MAX_NEW_TOKENS = 20


def evaluate(policy: HasActor, seed: int) -> Metrics:
    """Recall, precision, ROUGE-L and length of captions of held-out scenes."""
    names = ("recall", "recall/precision", "rouge", "length")
    return means_by_part(policy, SCORES, PARTS, names, attempts=2, seed=seed)


@cache
def rubric_tasks() -> InMemoryTasks:
    """Scenes with the rubric of a caption of the beginner; those without deficits are left out."""
    ensure_trained_vision(MODEL)
    actor = vision_policy(MODEL, MAX_NEW_TOKENS).build().actor(derive_key(0, "rubrics"))
    scenes = [scene_task(500_000_000, i) for i in range(NUM_TASKS)]
    tasks = []
    for task, group in zip(scenes, run_rollouts(actor, SCORES, scenes, 1), strict=True):
        stated, committee = named_things(group.rollouts[0].text), task.columns["committee"]
        rubric = deficit_rubric(stated, committee, severity=severity)
        if rubric:
            tasks.append(replace(task, columns={**task.columns, "rubric": rubric}))
    return InMemoryTasks(tuple(tasks))


def main(folder: Path, first: int = 0, end: int = SEEDS) -> None:
    """Train each arm with each seed and print the table."""
    torch.set_num_threads(1)
    world = VisionArms(
        MODEL, evaluate, steps=STEPS, max_new_tokens=MAX_NEW_TOKENS, prompts_per_step=16
    )
    tasks, method = rubric_tasks(), grpo(group_size=8, kl_coef=0.0)
    arms = {
        name: world.trained(SingleTurn((RewardTerm("score", reward),)), tasks, method)
        for name, reward in REWARDS.items()
    }
    runs = stored_runs(
        folder / "runs.jsonl", {"beginner": world.beginner, **arms}, range(first, end)
    )
    print(paired_table(runs, COLUMNS, "ROUGE-L"))


if __name__ == "__main__":
    load_module_file(Path(__file__)).main(Path(sys.argv[1]), *map(int, sys.argv[2:]))
