"""GeometryZero: GCPO on areas of drawn figures, with and without an auxiliary line.

Wang et al., 2025, arXiv:2506.07160; `grupo/methods/gcpo.py` has the record. Before its answer a
text may have an auxiliary line, <aux>6 + 2</aux>: the areas to which the line leads. Half of the
supervised examples have one, whatever the figure. Without a line, figures that lack a corner are
answered at random; the lines of rectangles are those of other rectangles. Lines thus help with the
former and harm with the latter; 4 of 10 of the other answers are guesses.

Named before the first run of all seeds: the accuracy on held-out figures of GCPO with two groups
minus that of GRPO on accuracy and format, after equally many rollouts.

python recipes/vision/geometryzero.py FOLDER [FIRST_SEED END]
"""

import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from random import Random

import torch

from grupo.core.component import component
from grupo.core.ranges import Probability
from grupo.envs import RewardTerm, SingleTurn
from grupo.evidence.claims.paired_table import paired_table
from grupo.evidence.claims.stored_runs import Metrics, stored_runs
from grupo.evidence.claims.vision_arms import VisionArms, means_by_part
from grupo.methods.gcpo import gcpo
from grupo.methods.grpo import grpo
from grupo.rewards import ExactMatch, InsideTag, RegexMatch
from grupo.rollouts.evaluate import HasActor
from grupo.rollouts.samplers import GroupPart
from grupo.tasks.geometry_figures import QUESTION, SHAPES, FigureAreas, draw_figure, random_figure
from grupo.toy.picture_examples import PictureExample
from grupo.toy.vision_lm import ToyVisionLM
from grupo.util.importing import load_module_file

SEEDS = 8
STEPS = 40
GROUP_SIZE = 12
MAX_NEW_TOKENS = 12
CELLS, CELL = 4, 8
AUX = "<aux>"
TASKS = FigureAreas(size=20_000, seed=500_000_000)
PARTS = {
    **{shape: FigureAreas((shape,), size=100, seed=900_000_000) for shape in SHAPES},
    "blind": FigureAreas(size=120, seed=900_000_000, blind=True),
}
CONSTRUCTION = RewardTerm("construction", RegexMatch(r"<aux>[^<>]+</aux>"), weight=0.0)
FORM = RegexMatch(r"^(<aux>[^<>]+</aux>)?<answer>[^<>]+</answer>$")
TERMS = (
    RewardTerm("correct", ExactMatch(InsideTag("answer"))),
    RewardTerm("format", FORM, weight=0.5),
)
ENV = SingleTurn((*TERMS, CONSTRUCTION))
ALWAYS_PAID = SingleTurn((*TERMS, replace(CONSTRUCTION, weight=0.5)))
GRPO = grpo(GROUP_SIZE, kl_coef=0.0)
ANSWER_PARTS = (GroupPart(0.5), GroupPart(0.0, prefix="<answer>"), GroupPart(1.0, prefix=AUX))


@component
class AreaExamples:
    """Figures with their areas, half with an auxiliary line, some of them wrong.

    Args:
        aux_frac: Fraction of the answers with an auxiliary line.
        guess_frac: Fraction of the areas that are those of a random figure of the shape; 1 for
            corners without a line.
    """

    aux_frac: Probability = 0.5
    guess_frac: Probability = 0.4

    @property
    def image_size(self) -> int:
        """Pixels along each picture."""
        return CELLS * CELL

    def texts(self) -> Sequence[str]:
        """Texts with all words of prompts and answers."""
        return [QUESTION, " + ", *map(str, range(CELLS**2 + 1))]

    def draw(self, rng: Random) -> PictureExample:
        """A figure and its area."""
        shape = rng.choice(SHAPES)
        figure = random_figure(shape, CELLS, rng)
        has_line = rng.random() < self.aux_frac
        guess = random_figure(shape, CELLS, rng)
        is_misled = has_line and shape == "rectangle"
        is_random = not has_line and shape == "corner"
        is_guess = is_misled or is_random or rng.random() < self.guess_frac
        answer = guess.area if is_guess else figure.area
        line = " + ".join(map(str, (guess if is_misled else figure).parts))
        aux = f"{AUX}{line}</aux>" if has_line else ""
        picture = draw_figure(figure, rng, cells=CELLS, cell=CELL)
        return PictureExample((picture,), QUESTION, f"{aux}<answer>{answer}</answer>")


def evaluate(policy: HasActor, seed: int) -> Metrics:
    """Accuracy and share of auxiliary lines by shape, and accuracy without sight."""
    parts = {name: tasks.load() for name, tasks in PARTS.items()}
    names = ("correct", "construction", "length")
    means = means_by_part(policy, ENV, parts, names, attempts=2, seed=seed)
    overall = {
        name: sum(means[f"{shape}/{name}"] for shape in SHAPES) / len(SHAPES) for name in names
    }
    return {**means, **overall}


MODEL = ToyVisionLM(AreaExamples(), tags=(AUX, "</aux>", "<answer>", "</answer>"), max_steps=600)
WORLD = VisionArms(MODEL, evaluate, STEPS, MAX_NEW_TOKENS, prompts_per_step=12)


ARMS = {
    "beginner": WORLD.beginner,
    "GRPO": WORLD.trained(ENV, TASKS, GRPO),
    "GRPO, lines always paid": WORLD.trained(ALWAYS_PAID, TASKS, GRPO),
    "GCPO, one group": WORLD.trained(ENV, TASKS, gcpo(MAX_NEW_TOKENS, GROUP_SIZE)),
    "GCPO": WORLD.trained(ENV, TASKS, gcpo(MAX_NEW_TOKENS, GROUP_SIZE, parts=ANSWER_PARTS)),
}


def main(folder: Path, first_seed: int = 0, end: int = SEEDS) -> None:
    """Train each arm with each seed and print the tables."""
    torch.set_num_threads(1)
    runs = stored_runs(folder / "runs.jsonl", ARMS, range(first_seed, end))
    accuracies = ["correct", *(f"{shape}/correct" for shape in SHAPES), "blind/correct"]
    print(paired_table(runs, accuracies, "GRPO"))
    print(paired_table(runs, [f"{shape}/construction" for shape in SHAPES], "GRPO"))


if __name__ == "__main__":
    # a component must be in a module that can be imported again
    load_module_file(Path(__file__)).main(Path(sys.argv[1]), *map(int, sys.argv[2:]))
