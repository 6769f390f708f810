"""A small flow model, grown on the spot, learns with Flow-GRPO to draw what captions say.

python recipes/images/shapes.py FOLDER

Grows the model where nobody did before, trains it, and writes beside the run what it drew of
held-out captions before and after, of the same noise: `before.png` and `after.png`, a row for each
of twelve captions, and `table.md`. That shapes have their form is not rewarded, only measured.
"""

import sys
from pathlib import Path

from grupo.envs import Part
from grupo.envs.images import Images
from grupo.evaluation import Solved
from grupo.grow.flows import ensure
from grupo.grow.shapes import ShapesFlow
from grupo.methods.flow_grpo import flow_grpo
from grupo.policies.flow import Flow
from grupo.recipe import Evaluation, Recipe
from grupo.report.drawings import around
from grupo.rewards.image import Colours, Counts, Forms, Sides
from grupo.tasks.shapes import Shapes

GROWN = ShapesFlow()
WORLD = Images(
    (
        Part("colour", Colours(), 0.2),
        Part("count", Counts(), 0.4),
        Part("side", Sides(), 0.4),
        Part("form", Forms(), 0.0),
    )
)
HELD_OUT = Shapes(1_500, 32)
RECIPE = Recipe(
    policy=Flow(str(GROWN.home), steps=8, window=(0, 1, 2, 3), noise=0.7, budget=1024),
    env=WORLD,
    tasks=Shapes(0, 1_500),
    held_out=HELD_OUT,
    method=flow_grpo(group=16, kl=0.0, updates=1),
    steps=100,
    prompts=8,
    lr=1e-4,
    evaluation=Evaluation(attempts=2, solved=Solved(at_least=1.0)),
    save_every=10,
)


def main(run: Path) -> None:
    """Grow, train, and draw before and after."""
    ensure(GROWN)
    print(around(RECIPE, WORLD, HELD_OUT, run))


if __name__ == "__main__":
    main(Path(sys.argv[1]))
