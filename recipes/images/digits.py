"""Flow-GRPO teaches a toy flow model to generate digits that a classifier recognises.

python recipes/images/digits.py FOLDER

Trains the toy model if it does not exist, then trains it with the reward of one classifier. The run
folder FOLDER also gets samples of the same noise before and after, `before.png` and `after.png`
with a row for each digit, and `table.md`. A classifier trained on other images is measured only.
"""

import sys
from pathlib import Path

from grupo.envs import RewardTerm
from grupo.envs.image_generation import ImageGeneration
from grupo.methods.flow_grpo import flow_grpo
from grupo.models.flow import Flow
from grupo.recipe import Evaluation, Recipe
from grupo.report.image_samples import train_and_compare
from grupo.rewards.image_digits import (
    DigitProbability,
    DigitSimilarity,
    knn_classifier,
    linear_classifier,
)
from grupo.rollouts.evaluate import SuccessCriterion
from grupo.tasks.digit_captions import DigitTasks
from grupo.toy.digit_flow import DigitsFlow
from grupo.toy.flow_pretrain import ensure_trained_flow

FLOW_MODEL = DigitsFlow()
ENV = ImageGeneration(
    (
        RewardTerm("linear", DigitProbability(linear_classifier)),
        RewardTerm("neighbours", DigitProbability(knn_classifier), 0.0),
        RewardTerm("handwritten", DigitSimilarity(), 0.0),
    )
)
RECIPE = Recipe(
    policy=Flow(
        str(FLOW_MODEL.model_dir), num_steps=8, noise_level=0.7, tokens_per_microbatch=4096
    ),
    env=ENV,
    tasks=DigitTasks(),
    eval_tasks=0,
    method=flow_grpo(group_size=12, kl_coef=0.2, minibatches=1),
    max_steps=40,
    prompts_per_step=10,
    learning_rate=3e-4,
    evaluation=Evaluation(attempts=4, success=SuccessCriterion(min_reward=0.5)),
    save_every=20,
)


def main(run_dir: Path) -> None:
    """Train, and save samples before and after."""
    ensure_trained_flow(FLOW_MODEL)
    print(train_and_compare(RECIPE, ENV, DigitTasks(), run_dir))


if __name__ == "__main__":
    main(Path(sys.argv[1]))
