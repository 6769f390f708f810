"""PixelThink: thoughts of fewer tokens on easy tasks, for boxes and points in pictures.

Wang et al., 2025, arXiv:2505.23727. A question is about the place of a thing in a drawn scene; the
answer is the prompt of a segmenter: a box and two points, from which a flood fill makes the mask.
Scenes with one thing are easy, those with four are hard. The thoughts of the model that RL starts
from have one to eight remarks, whatever the scene.

Named before the first run of all seeds: with the length factor answers on easy scenes have fewer
tokens than with GRPO on the same reward. The IoU of masks on easy scenes is shown beside it.

python recipes/vision/pixelthink.py FOLDER [FIRST_SEED END]
"""

import sys
from pathlib import Path

import torch
from segmenter_prompts import CELL, TAGS, DifficultScenes, RemarkExamples

from grupo.algo.advantages import Center, ScaleByStd, chain
from grupo.algo.advantages.difficulty_budget import DifficultyBudget
from grupo.core.paper import Paper, Source
from grupo.envs import RewardTerm, SingleTurn
from grupo.evidence.claims.paired_table import paired_table
from grupo.evidence.claims.stored_runs import Metrics, stored_runs
from grupo.evidence.claims.vision_arms import VisionArms, means_by_part
from grupo.methods.grpo import grpo
from grupo.rewards import ColumnNumber, MaskIoU, SegmentationPrompt
from grupo.rollouts.evaluate import HasActor
from grupo.tasks.scene_boxes import SceneBoxes
from grupo.toy.vision_lm import ToyVisionLM

PAPER = Paper(
    title="PixelThink: Towards Efficient Chain-of-Pixel Reasoning",
    kind="reward",
    use="Thoughts should be short on easy tasks and may be long on hard and uncertain ones.",
    tags=("multimodal", "length", "reward"),
    catalogue=("pixelthink",),
    source=Source(
        "code",
        "songw-zju/PixelThink: training_scripts/qwen3vl/pixelthink_seg_reward.py and"
        " verl/utils/reward_score/seg_pixelthink.py",
    ),
    checked=("golden", "run"),
    missing=(
        "SAM as the segmenter: `Segmenter` is its protocol, and a flood fill makes the masks.",
    ),
    deviations=(
        "Lengths are tokens, not words between blanks; budgets are those of a toy model's answers.",
        "The IoU counts areas between edges, not pixels with both edges.",
        "Difficulty is the number of things in the scene, not the score of a large model.",
    ),
    shown=(
        "docs/vision_shown/pixelthink.md#results",
        "tests/algo/advantages/test_difficulty_budget.py::test_the_factor_of_a_length",
    ),
)

STEPS = 12
BUDGET = DifficultyBudget(easy_budget=42.0, hard_budget=54.0, uncertainty_coef=8.0, slope=30.0)
EVAL_SEED, TRAIN_SEED = 900_000_000, 500_000_000
LEVELS = {"easy": (1, 1), "medium": (2, 3), "hard": (4, 4)}
COLUMNS = ("easy/length", "easy/iou", "medium/length", "hard/length", "hard/iou", "blind/iou")


ENV = SingleTurn(
    (
        RewardTerm("accuracy", SegmentationPrompt(sides_threshold=4.0, points_threshold=4.0)),
        RewardTerm("iou", MaskIoU(), 0.0),
        RewardTerm("difficulty", ColumnNumber("difficulty"), 0.0),
    )
)


def evaluate(policy: HasActor, seed: int) -> Metrics:
    """Lengths, IoU and conditions on held-out scenes by difficulty, and on noise."""
    scenes = {
        name: SceneBoxes(60, EVAL_SEED, things=things, grid=CELL) for name, things in LEVELS.items()
    }
    scenes["blind"] = SceneBoxes(50, EVAL_SEED, blind=True, grid=CELL)
    parts = {name: list(DifficultScenes(source).load()) for name, source in scenes.items()}
    return means_by_part(policy, ENV, parts, ("length", "iou", "accuracy"), attempts=2, seed=seed)


GRPO = grpo(group_size=8, kl_coef=0.005)
PIXELTHINK = GRPO.replace(advantage=chain(BUDGET, Center(), ScaleByStd()))
MODEL = ToyVisionLM(
    RemarkExamples(), tags=TAGS, tower_layers=2, text_layers=3, batch_size=32, max_steps=2400
)
WORLD = VisionArms(MODEL, evaluate, steps=STEPS, max_new_tokens=72, prompts_per_step=12)
TASKS = DifficultScenes(SceneBoxes(50_000, TRAIN_SEED, things=(1, 4), grid=CELL))
ARMS = {
    "beginner": WORLD.beginner,
    "GRPO": WORLD.trained(ENV, TASKS, GRPO),
    "PixelThink": WORLD.trained(ENV, TASKS, PIXELTHINK),
}


def main(folder: Path, first: int = 0, end: int = 8) -> None:
    """Train each arm with each seed and print the table."""
    torch.set_num_threads(1)
    runs = stored_runs(folder / "runs.jsonl", ARMS, range(first, end))
    print(paired_table(runs, COLUMNS, "GRPO"))


if __name__ == "__main__":
    main(Path(sys.argv[1]), *map(int, sys.argv[2:]))
