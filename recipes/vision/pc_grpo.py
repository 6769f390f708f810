"""PC-GRPO: GRPO on puzzles from pictures, weighted by difficulty. arXiv:2512.14944.

The puzzle is the rotation of handwritten digits, of which every fifth is held out. Named
before the first run: the held-out accuracy after `STEPS` steps, weighted against unweighted GRPO.

python recipes/vision/pc_grpo.py FOLDER [FIRST_SEED END]
"""

import sys
from pathlib import Path

import torch

from grupo.algo.advantages import Center, ScaleByStd, chain
from grupo.algo.advantages.medium_difficulty import MediumDifficulty
from grupo.core.paper import Paper, Source
from grupo.envs import RewardTerm, SingleTurn
from grupo.evidence.claims.paired_table import paired_table
from grupo.evidence.claims.stored_runs import Metrics, stored_runs
from grupo.evidence.claims.tiny_lm import mean_terms
from grupo.evidence.claims.vision_arms import VisionArms
from grupo.methods.grpo import grpo
from grupo.rewards import ExactMatch
from grupo.rollouts.evaluate import HasActor
from grupo.tasks.picture_puzzles import DigitPictures, RotationPuzzles
from grupo.toy.picture_examples import TaskExamples
from grupo.toy.vision_lm import ToyVisionLM

PAPER = Paper(
    title="Puzzle Curriculum GRPO for Vision-Centric Reasoning",
    kind="environment",
    use="There are pictures without labels: puzzles made of them train to see.",
    tags=("reward", "curriculum"),
    catalogue=("pc-grpo",),
    source=Source("abstract", "arXiv:2512.14944; the weights' formulas are ours"),
    checked=("golden", "run"),
    missing=("The consistency of thoughts and answers: `ConclusionMatch` or a judge measures it.",),
    deviations=(
        "Weights are 4 r (1 - r), times the share of different permutations for jigsaws.",
        "Rotations of digits are trained; jigsaws and patches are tested with solutions by code.",
    ),
    shown=(
        "docs/vision_shown/pc_grpo.md#rotation",
        "tests/algo/advantages/test_medium_difficulty.py::test_different_permutations_weigh_more",
    ),
)
SEEDS = 8
STEPS = 40
SEEN, HELD_OUT = DigitPictures(), DigitPictures(held_out=True)
ENV = SingleTurn((RewardTerm("correct", ExactMatch()),))
TASKS = RotationPuzzles(SEEN, size=20_000, seed=500_000_000)
PARTS = {
    "held_out": RotationPuzzles(HELD_OUT, size=400, seed=900_000_000),
    "blind": RotationPuzzles(HELD_OUT, size=400, seed=900_000_000, blind=True),
}
MODEL = ToyVisionLM(
    TaskExamples(RotationPuzzles(SEEN, size=20_000), image_size=SEEN.size, random_frac=0.5),
    max_steps=400,
    learning_rate=1e-3,
)
WEIGHTED = grpo(group_size=8, kl_coef=0.0).replace(
    advantage=chain(Center(), ScaleByStd(), MediumDifficulty("correct"))
)


def evaluate(policy: HasActor, seed: int) -> Metrics:
    """Sampled accuracy on held-out puzzles and with noise in place of the pictures."""
    return {
        part: mean_terms(policy, ENV, tasks.load(), attempts=2, seed=seed)["correct"]
        for part, tasks in PARTS.items()
    }


def main(folder: Path, first: int = 0, end: int = SEEDS) -> None:
    """Train each arm with each seed and print the table."""
    torch.set_num_threads(1)
    arms = VisionArms(MODEL, evaluate, steps=STEPS, max_new_tokens=3)
    runs = stored_runs(
        folder / "runs.jsonl",
        {
            "beginner": arms.beginner,
            "GRPO": arms.trained(ENV, TASKS, grpo(group_size=8, kl_coef=0.0)),
            "weighted": arms.trained(ENV, TASKS, WEIGHTED),
        },
        range(first, end),
    )
    print(paired_table(runs, [*PARTS], "GRPO"))


if __name__ == "__main__":
    main(Path(sys.argv[1]), *map(int, sys.argv[2:]))
