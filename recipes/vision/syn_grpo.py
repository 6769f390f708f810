"""Syn-GRPO: the policy describes new backgrounds for its training pictures.

Huang et al., 2025, arXiv:2511.19343. An answer has the box of a thing in a drawn scene and, in a
tag, a description of another background. A painter makes it around the kept box, and the next
group of the task is generated on that picture. All arms train on the same 16 pictures.

Named before the first run of all seeds: after as many steps, Syn-GRPO reaches a higher IoU on
held-out scenes than GRPO on the fixed pictures. Random backgrounds are shown beside it.

python recipes/vision/syn_grpo.py FOLDER [FIRST_SEED END]
"""

import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from random import Random
from statistics import fmean, pstdev

import torch

from grupo.algo.advantages import Center, PerRewardTerm, ScaleByStd, chain, identity
from grupo.core.component import component
from grupo.core.paper import Paper, Source
from grupo.envs import RewardTerm, SingleTurn
from grupo.evidence.claims.paired_table import paired_table
from grupo.evidence.claims.stored_runs import Metrics, stored_runs
from grupo.evidence.claims.vision_arms import VisionArms, means_by_part, vision_recipe
from grupo.method import Method
from grupo.methods.grpo import grpo
from grupo.rewards import BoxIoU, RegexMatch
from grupo.rollouts.evaluate import HasActor
from grupo.rollouts.samplers import GroupSampler
from grupo.rollouts.samplers.synthesis import SynthesizedTasks, TaskSynthesizer
from grupo.tasks import Repeated
from grupo.tasks.repainted_scenes import (
    RandomlyRepaintedScene,
    RepaintedScene,
    random_description,
)
from grupo.tasks.scene_boxes import (
    PlacedThing,
    SceneBoxes,
    box_question,
    draw_things,
    place_things,
)
from grupo.tasks.scenes import COLOURS, IMAGE_SIZE, SHAPES
from grupo.toy.picture_examples import PictureExample
from grupo.toy.scene_box_examples import LIST_REQUEST, list_of_things, scene_words
from grupo.toy.vision_lm import ToyVisionLM
from grupo.training.learner import Learner
from grupo.util.boxes import box_text
from grupo.util.importing import load_module_file

PAPER = Paper(
    title="Syn-GRPO: Self-Evolving Data Synthesis for MLLM Perception Reasoning",
    kind="curriculum",
    use="There are few pictures, and answers to them no longer differ.",
    tags=("multimodal", "curriculum", "exploration"),
    catalogue=("syn-grpo",),
    source=Source("abstract", "arXiv 2511.19343; the repository could not be had"),
    checked=("golden", "run"),
    missing=(
        "An image generation model: a `TaskSynthesizer` may call a server; here it is a painter.",
        "The smoothing of the diversity against a moving baseline.",
    ),
    deviations=(
        "The diversity of a description is measured at once, by 4 answers to its picture.",
        "The pool is the descriptions in the task's replays: of its 4 best and 4 worst answers.",
        "The weights 0.5 of format and diversity are our choice.",
    ),
    shown=("docs/vision_shown/syn_grpo.md#syn-grpo-pictures-that-the-policy-describes",),
)

CELL = 8  # pixels along a cell
BOXES = [
    box_text((x, y, x + size, y + size))
    for size in (CELL, 2 * CELL)
    for y in range(0, IMAGE_SIZE, size)
    for x in range(0, IMAGE_SIZE, size)
]
TAGS = ("<scene>", "</scene>", *BOXES)
PICTURES, STEPS, PROMPTS_PER_STEP, GROUP_SIZE = 16, 40, 8, 8
EVAL_SEED, TRAIN_SEED = 900_000_000, 500_000_000
COLUMNS = ("iou", "train/iou", "spread", "signal", "blind/iou")
LOW = 0.1  # a group has signal if the standard deviation of its IoU is above
FORMAT = r"^\[\d+, \d+, \d+, \d+\]<scene>[a-z, ]+</scene>$"


@component
class DescribedExamples:
    """Lists, and questions for a box, answered with a random description behind it."""

    @property
    def image_size(self) -> int:
        """Pixels along each picture."""
        return IMAGE_SIZE

    def texts(self) -> Sequence[str]:
        """Texts with all words of prompts and answers."""
        things = [PlacedThing(*pair, (0, 0, 8, 8)) for pair in zip(COLOURS, SHAPES, strict=True)]
        answers = [f"[1, 2]{random_description(Random(i))}" for i in range(20)]
        return [*scene_words(), *map(box_question, things), *answers, LIST_REQUEST]

    def draw(self, rng: Random) -> PictureExample:
        """A picture with a request or a question."""
        things = place_things(rng.randint(2, 4), rng, CELL)
        pictures = (draw_things(things, rng),)
        if rng.random() < 0.4:
            return PictureExample(pictures, LIST_REQUEST, list_of_things(things))
        thing = rng.choice(things)
        answer = f"{box_text(thing.box)}{random_description(rng)}"
        return PictureExample(pictures, box_question(thing), answer)


ENV = SingleTurn(
    (RewardTerm("iou", BoxIoU()), RewardTerm("format", RegexMatch(FORMAT), 0.5)),
)


def evaluate(policy: HasActor, seed: int) -> Metrics:
    """IoU on held-out scenes, on the training pictures and on noise."""
    parts = {
        "test": list(SceneBoxes(200, EVAL_SEED, grid=CELL).load()),
        "train": list(SceneBoxes(PICTURES, TRAIN_SEED, grid=CELL).load()),
        "blind": list(SceneBoxes(100, EVAL_SEED, blind=True, grid=CELL).load()),
    }
    means = means_by_part(policy, ENV, parts, ("iou", "format"), seed=seed)
    return {**means, "iou": means["test/iou"]}


MODEL = ToyVisionLM(
    DescribedExamples(), tags=TAGS, tower_layers=2, text_layers=3, batch_size=32, max_steps=1000
)
WORLD = VisionArms(MODEL, evaluate, STEPS, 32, PROMPTS_PER_STEP)
GRPO = grpo(GROUP_SIZE, kl_coef=0.0)


def synthesized(synthesize: TaskSynthesizer, probes: int) -> Method:
    """GRPO on IoU, format and diversity, with pictures that are synthesised."""
    weights = (("iou", 1.0), ("format", 0.5), ("diversity", 0.5))
    return GRPO.replace(
        sampler=SynthesizedTasks(GroupSampler(GROUP_SIZE), synthesize, probes),
        advantage=chain(PerRewardTerm(identity, weights), Center(), ScaleByStd()),
    )


def trained_on_pictures(method: Method) -> Callable[[int], Metrics]:
    """The arm of a method, with the spread of the IoU within groups in the second half."""

    def run(seed: int) -> Metrics:
        recipe = vision_recipe(
            MODEL, ENV, TASKS, method, steps=STEPS, seed=seed, max_new_tokens=WORLD.max_new_tokens
        )
        learner = Learner(recipe.replace(prompts_per_step=PROMPTS_PER_STEP))
        results = [learner.step() for _ in range(STEPS)]
        spreads = [
            pstdev(rollout.reward_terms["iou"] for rollout in group.rollouts)
            for result in results[STEPS // 2 :]
            for group in result.collected.sampled_groups
        ]
        signal = fmean(spread > LOW for spread in spreads)
        measured = {"spread": fmean(spreads), "signal": signal}
        return {**evaluate(learner.policy, seed), **measured}

    return run


def beginner(seed: int) -> Metrics:
    """Metrics of the model before RL, which has no groups."""
    return {**WORLD.beginner(seed), "spread": 0.0, "signal": 0.0}


TASKS = Repeated(SceneBoxes(PICTURES, TRAIN_SEED, grid=CELL), 1000)
ARMS = {
    "beginner": beginner,
    "GRPO, fixed pictures": trained_on_pictures(GRPO),
    "random backgrounds": trained_on_pictures(synthesized(RandomlyRepaintedScene(CELL), 0)),
    "Syn-GRPO": trained_on_pictures(synthesized(RepaintedScene(CELL), 4)),
}


def main(folder: Path, first: int = 0, end: int = 8) -> None:
    """Train each arm with each seed and print the table."""
    torch.set_num_threads(1)
    runs = stored_runs(folder / "runs.jsonl", ARMS, range(first, end))
    print(paired_table(runs, COLUMNS, "GRPO, fixed pictures"))


if __name__ == "__main__":
    # a component must be in a module that can be imported again
    load_module_file(Path(__file__)).main(Path(sys.argv[1]), *map(int, sys.argv[2:]))
