"""Flow-GRPO teaches a toy flow model, trained on wrong captions too, to follow its captions.

python recipes/images/shapes.py FOLDER

Trains the toy model if it does not exist, with wrong captions for half of the images, then trains
it with the area match as the reward. The run folder FOLDER also gets samples of held-out captions
with the same noise before and after, `before.png` and `after.png` with a row for each of twelve
captions, and `table.md`. Colours, counts, sides and shapes are measured only.
"""

import sys
from pathlib import Path

from grupo.core.schedules import Linear
from grupo.envs import RewardTerm
from grupo.envs.image_generation import ImageGeneration
from grupo.methods.flow_grpo import flow_grpo
from grupo.models.flow import Flow
from grupo.recipe import Evaluation, Recipe
from grupo.report.image_samples import train_and_compare
from grupo.rewards.image_shapes import AreaMatch, ColourMatch, CountMatch, ShapeMatch, SideMatch
from grupo.rollouts.evaluate import SuccessCriterion
from grupo.tasks.shape_captions import ShapeTasks
from grupo.toy.flow_pretrain import ensure_trained_flow
from grupo.toy.shape_flow import ShapesFlow

FLOW_MODEL = ShapesFlow(max_steps=600, wrong_caption_frac=0.5)
EVAL_TASKS = ShapeTasks(1_500, 32)
ENV = ImageGeneration(
    (
        RewardTerm("areas", AreaMatch()),
        RewardTerm("colour", ColourMatch(), 0.0),
        RewardTerm("count", CountMatch(), 0.0),
        RewardTerm("side", SideMatch(), 0.0),
        RewardTerm("form", ShapeMatch(), 0.0),
    )
)
RECIPE = Recipe(
    policy=Flow(
        str(FLOW_MODEL.model_dir),
        num_steps=8,
        sde_window=(0, 1, 2),
        noise_level=0.7,
        tokens_per_microbatch=256,
    ),
    env=ENV,
    tasks=ShapeTasks(0, 1_500),
    eval_tasks=EVAL_TASKS,
    method=flow_grpo(group_size=12, kl_coef=0.1, minibatches=1),
    max_steps=40,
    prompts_per_step=12,
    learning_rate=Linear(4e-4, 1e-4),
    evaluation=Evaluation(attempts=2, success=SuccessCriterion(min_reward=0.9)),
    save_every=10,
)


def main(run_dir: Path) -> None:
    """Train, and save samples before and after."""
    ensure_trained_flow(FLOW_MODEL)
    print(train_and_compare(RECIPE, ENV, EVAL_TASKS, run_dir))


if __name__ == "__main__":
    main(Path(sys.argv[1]))
