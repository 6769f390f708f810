"""GRPO teaches a toy vision-language model to answer questions on pictures of coloured shapes.

grupo train recipes/vision/shapes.py:RECIPE
python recipes/vision/shapes.py FOLDER [SEED]

Both train the toy model if it does not exist, then train it with the exact match of the answer as
the reward. The second one also writes into the run folder FOLDER `table.md`, the accuracy by kind
of question before and after and with noise in place of the pictures, and `answers.png`, pictures
with questions and answers.
"""

import sys
from pathlib import Path

from grupo.core.schedules import Linear, Warmup
from grupo.envs import RewardTerm, SingleTurn
from grupo.methods.grpo import grpo
from grupo.models.vision_lm import VisionLM
from grupo.recipe import Evaluation, Recipe
from grupo.report.picture_answers import compare_answers
from grupo.rewards import ExactMatch
from grupo.rollouts.evaluate import SuccessCriterion
from grupo.tasks.scenes import SceneQuestions
from grupo.toy.quickstart import TOY_VISION_MODEL
from grupo.toy.vision_lm import ensure_trained_vision
from grupo.training.resume.load_run import load_policy
from grupo.training.start import run_training

EVAL_TASKS = SceneQuestions(400, seed=900_000_000)
BLIND_TASKS = SceneQuestions(400, seed=900_000_000, blind=True)
ENV = SingleTurn((RewardTerm("correct", ExactMatch()),))
RECIPE = Recipe(
    policy=VisionLM(str(TOY_VISION_MODEL.model_dir), max_new_tokens=4, tokens_per_microbatch=8192),
    env=ENV,
    tasks=SceneQuestions(50_000, seed=500_000_000),
    eval_tasks=EVAL_TASKS,
    method=grpo(group_size=8, kl_coef=0.0),
    max_steps=100,
    prompts_per_step=32,
    learning_rate=Warmup(0.1, Linear(2e-3, 2e-4)),
    evaluation=Evaluation(attempts=2, success=SuccessCriterion("correct")),
    save_every=100,
)


def main(run_folder: Path, seed: int = 0) -> None:
    """Train, and compare the answers before and after."""
    ensure_trained_vision(TOY_VISION_MODEL)
    run_training(RECIPE.replace(seed=seed), run_folder)
    after, _ = load_policy(run_folder)
    policies = {"before": RECIPE.policy.build(), "after": after}
    print(compare_answers(policies, ENV, EVAL_TASKS.load(), BLIND_TASKS.load(), run_folder))


if __name__ == "__main__":
    main(Path(sys.argv[1]), *map(int, sys.argv[2:]))
