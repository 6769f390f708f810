"""A small flow model, taught with loose captions, learns with Flow-GRPO to draw what they say.

python recipes/images/shapes.py FOLDER

Grows the model where nobody did before, half of its drawings captioned as another, trains it on how
nearly each colour covers what the caption asks for, and writes beside the run what it drew of
held-out captions before and after, of the same noise: `before.png` and `after.png`, a row for each
of twelve captions, and `table.md`. Colours, counts, sides and forms are measured only.
"""

import sys
from pathlib import Path

from grupo.core.schedules import Linear
from grupo.envs import Part
from grupo.envs.image_generation import Images
from grupo.methods.flow_grpo import flow_grpo
from grupo.models.flow import Flow
from grupo.recipe import Evaluation, Recipe
from grupo.report.image_samples import around
from grupo.rewards.image_shapes import Areas, Colours, Counts, Forms, Sides
from grupo.rollouts.evaluate import Solved
from grupo.tasks.shape_captions import Shapes
from grupo.toy.flow_pretrain import ensure
from grupo.toy.shape_flow import ShapesFlow

GROWN = ShapesFlow(steps=600, loose=0.5)
HELD_OUT = Shapes(1_500, 32)
WORLD = Images(
    (
        Part("areas", Areas()),
        Part("colour", Colours(), 0.0),
        Part("count", Counts(), 0.0),
        Part("side", Sides(), 0.0),
        Part("form", Forms(), 0.0),
    )
)
RECIPE = Recipe(
    policy=Flow(str(GROWN.home), steps=8, window=(0, 1, 2), noise=0.7, budget=256),
    env=WORLD,
    tasks=Shapes(0, 1_500),
    held_out=HELD_OUT,
    method=flow_grpo(group=12, kl=0.1, updates=1),
    steps=40,
    prompts=12,
    lr=Linear(4e-4, 1e-4),
    evaluation=Evaluation(attempts=2, solved=Solved(at_least=0.9)),
    save_every=10,
)


def main(run: Path) -> None:
    """Grow, train, and draw before and after."""
    ensure(GROWN)
    print(around(RECIPE, WORLD, HELD_OUT, run))


if __name__ == "__main__":
    main(Path(sys.argv[1]))
