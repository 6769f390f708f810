"""A small flow model, grown on the spot, learns with Flow-GRPO to draw what captions say.

python recipes/images/shapes.py FOLDER

Grows the model where nobody did before, trains it, and writes beside the run `before.png` and
`after.png`: twelve held-out captions, a row each, drawn eight times with the same noise.
"""

import sys
from collections.abc import Sequence
from pathlib import Path

from grupo.envs import Part
from grupo.envs.images import Images
from grupo.evaluation import Solved, play_all
from grupo.grow.shapes import ShapesFlow, ensure
from grupo.methods.flow_grpo import flow_grpo
from grupo.policies.base import Policy
from grupo.policies.flow import Flow
from grupo.recipe import Evaluation, Recipe
from grupo.report.pictures import grid
from grupo.rewards.image import Colours, Counts, Sides
from grupo.rollout import Rollout
from grupo.tasks.shapes import Shapes
from grupo.trainer import policy_of, train

GROWN = ShapesFlow()
WORLD = Images(
    (Part("colour", Colours(), 0.2), Part("count", Counts(), 0.4), Part("side", Sides(), 0.4))
)
RECIPE = Recipe(
    policy=Flow(str(GROWN.home), steps=8, noise=0.7, budget=1024),
    env=WORLD,
    tasks=Shapes(0, 1_500),
    held_out=Shapes(1_500, 64),
    method=flow_grpo(group=12, kl=0.0, updates=1),
    steps=60,
    prompts=8,
    lr=3e-4,
    evaluation=Evaluation(attempts=4, solved=Solved(at_least=1.0)),
    save_every=20,
)


def main(run: Path) -> None:
    """Grow, train, and draw before and after."""
    ensure(GROWN)
    train(RECIPE, run)
    for name, policy in (("before", RECIPE.policy.build()), ("after", policy_of(run)[0])):
        grid(_drawn(policy), run / f"{name}.png")


def _drawn(policy: Policy) -> list[Sequence[Rollout]]:
    groups = play_all(policy.act(7), RECIPE.env, Shapes(1_500, 12).load(), 8)
    return [group.rollouts for group in groups]


if __name__ == "__main__":
    main(Path(sys.argv[1]))
