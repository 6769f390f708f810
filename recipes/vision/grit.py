"""GRIT: thoughts that name boxes, learned from 20 tasks without true boxes.

Fan et al., 2025, arXiv:2505.15879. A question asks for the colour of a cell in a drawn grid. The
model that RL starts from names a box in some of its thoughts only, leaves tags out, and at times
attends to another cell.

Named before the first run of all seeds: with GRIT's rewards more held-out answers point at the
cell asked about (the centre of a box in the thoughts lies in it) than with the reward of the
answer alone. Accuracy is shown beside it.

python recipes/vision/grit.py FOLDER [FIRST_SEED END]
"""

import sys
from pathlib import Path

import torch
from grid_questions import TAGS, GridQuestions, ThoughtExamples

from grupo.core.paper import Paper, Source
from grupo.envs import RewardTerm, SingleTurn
from grupo.evidence.claims.paired_table import paired_table
from grupo.evidence.claims.stored_runs import Metrics, stored_runs
from grupo.evidence.claims.vision_arms import VisionArms, means_by_part
from grupo.methods.grpo import grpo
from grupo.rewards import (
    BoxBeforeTag,
    BoxCenterHit,
    ExactMatch,
    FewRepetitions,
    InsideTag,
    SingleTag,
    ThoughtTags,
    UnigramBleu,
)
from grupo.rollouts.evaluate import HasActor
from grupo.tasks import Repeated
from grupo.toy.vision_lm import ToyVisionLM

PAPER = Paper(
    title="GRIT: Teaching MLLMs to Think with Images",
    kind="reward",
    use="Thoughts should name the regions of a picture that they are about, without true boxes.",
    tags=("multimodal", "reward"),
    catalogue=("grit-grpo-gr",),
    source=Source("code", "eric-ai-lab/GRIT: grpo-gr/rewards.py and grpo-gr/GRPO_GR.py"),
    checked=("golden", "run"),
    missing=("A judge of answers: any reward of the library; here the exact match.",),
    deviations=(
        "BLEU-1 ends an answer at its closing tag, whose name the released code counts as a word.",
    ),
    shown=(
        "docs/vision_shown/grit.md#results",
        "tests/recipes/test_vision_grit.py::test_a_grounded_answer_points_at_the_cell_and_scores_3_1",
    ),
)

TRAINING_TASKS, STEPS = 20, 40
EVAL_SEED, TRAIN_SEED = 900_000_000, 500_000_000
COLUMNS = ("seen/point", "seen/named", "seen/correct", "blind/point", "blind/correct")


def env(weight: float) -> SingleTurn:
    """The reward of the answer, GRIT's others with a weight, and the pointing game without."""
    return SingleTurn(
        (
            RewardTerm("correct", ExactMatch(InsideTag("answer"))),
            RewardTerm("named", BoxBeforeTag(), weight),
            RewardTerm("thoughts", ThoughtTags(), weight),
            RewardTerm("answer", SingleTag(), weight),
            RewardTerm("bleu", UnigramBleu(), 0.1 * weight),
            RewardTerm("repetition", FewRepetitions(), weight),
            RewardTerm("point", BoxCenterHit(InsideTag("think"), column="box"), 0.0),
        )
    )


def evaluate(policy: HasActor, seed: int) -> Metrics:
    """Pointing game, boxes and accuracy on held-out pictures and on noise in their place."""
    parts = {
        "seen": list(GridQuestions(200, EVAL_SEED).load()),
        "blind": list(GridQuestions(100, EVAL_SEED, blind=True).load()),
    }
    names = ("point", "named", "correct", "length")
    return means_by_part(policy, env(1.0), parts, names, attempts=2, seed=seed)


MODEL = ToyVisionLM(
    ThoughtExamples(), tags=TAGS, tower_layers=2, text_layers=3, batch_size=32, max_steps=1600
)
WORLD = VisionArms(MODEL, evaluate, steps=STEPS, max_new_tokens=32, prompts_per_step=16)
TASKS = Repeated(GridQuestions(TRAINING_TASKS, TRAIN_SEED), 1000)
GRPO = grpo(group_size=8, kl_coef=0.0)
ARMS = {
    "beginner": WORLD.beginner,
    "GRPO": WORLD.trained(env(0.0), TASKS, GRPO),
    "GRIT": WORLD.trained(env(1.0), TASKS, GRPO),
}


def main(folder: Path, first: int = 0, end: int = 8) -> None:
    """Train each arm with each seed and print the table."""
    torch.set_num_threads(1)
    runs = stored_runs(folder / "runs.jsonl", ARMS, range(first, end))
    print(paired_table(runs, COLUMNS, "GRPO"))


if __name__ == "__main__":
    main(Path(sys.argv[1]), *map(int, sys.argv[2:]))
