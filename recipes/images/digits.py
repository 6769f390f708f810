"""A small flow model, grown on the spot, learns with Flow-GRPO to write digits that are read right.

python recipes/images/digits.py FOLDER

Grows the model where nobody did before, trains it on what one classifier says, and writes beside
the run what it wrote before and after, of the same noise: `before.png` and `after.png`, a row for
each digit, and `table.md`. What another classifier says, trained on other images, is measured only.
"""

import sys
from pathlib import Path

from grupo.envs import Part
from grupo.envs.image_generation import Images
from grupo.methods.flow_grpo import flow_grpo
from grupo.models.flow import Flow
from grupo.recipe import Evaluation, Recipe
from grupo.report.image_samples import around
from grupo.rewards.image_digits import Handwritten, LooksLike, linear, neighbours
from grupo.rollouts.evaluate import Solved
from grupo.tasks.digit_captions import Digits
from grupo.toy.digit_flow import DigitsFlow
from grupo.toy.flow_pretrain import ensure

GROWN = DigitsFlow()
WORLD = Images(
    (
        Part("linear", LooksLike(linear)),
        Part("neighbours", LooksLike(neighbours), 0.0),
        Part("handwritten", Handwritten(), 0.0),
    )
)
RECIPE = Recipe(
    policy=Flow(str(GROWN.home), steps=8, noise=0.7, budget=4096),
    env=WORLD,
    tasks=Digits(),
    held_out=0,
    method=flow_grpo(group=12, kl=0.2, updates=1),
    steps=40,
    prompts=10,
    lr=3e-4,
    evaluation=Evaluation(attempts=4, solved=Solved(at_least=0.5)),
    save_every=20,
)


def main(run: Path) -> None:
    """Grow, train, and write before and after."""
    ensure(GROWN)
    print(around(RECIPE, WORLD, Digits(), run))


if __name__ == "__main__":
    main(Path(sys.argv[1]))
