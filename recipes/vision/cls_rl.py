"""CLS-RL: GRPO on labels of pictures, with thoughts before the label and without.

Li et al., 2025, arXiv:2503.16188. The pictures are handwritten digits, of which every fifth is held
out. The policy is trained on five digits, `BASE`, and evaluated on them and on the five others,
`NEW`; a prompt lists four of the five. Both arms start from one model, which knows both forms of
answers and names half of the digits wrongly.

Named before the first run of all seeds: the accuracy on held-out pictures of `BASE` without
thoughts minus that with thoughts, after equally many rollouts.

python recipes/vision/cls_rl.py FOLDER [FIRST_SEED END]
"""

import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from random import Random

import torch

from grupo.core.component import component
from grupo.core.paper import Paper, Source
from grupo.core.ranges import Probability
from grupo.envs import RewardTerm, SingleTurn
from grupo.evidence.claims.paired_table import paired_table
from grupo.evidence.claims.stored_runs import Metrics, stored_runs
from grupo.evidence.claims.vision_arms import VisionArms, means_by_part
from grupo.methods.grpo import grpo
from grupo.rewards import ExactMatch, LabelMatch, TagFormat
from grupo.rollouts.evaluate import HasActor
from grupo.tasks.labelled_pictures import DIGIT_LABELS, LabelledDigits, PictureClassification
from grupo.toy.picture_examples import PictureExample
from grupo.toy.vision_lm import ToyVisionLM
from grupo.util.importing import load_module_file

PAPER = Paper(
    title="Think or Not Think: A Study of Explicit Thinking in Rule-Based Visual Reinforcement"
    " Fine-Tuning",
    kind="reward",
    use="There are few labelled pictures, and the policy must also name other labels.",
    tags=("reward", "length", "multimodal"),
    catalogue=("cls-rl",),
    source=Source("code", "minglllli/CLS-RL: src/cls-rl/src/open_r1/grpo.py and grpo_direct.py"),
    checked=("golden", "run"),
    missing=("Labels that are compared as formulas before they are compared as text.",),
    deviations=(
        "`TagFormat` requires thoughts and an answer that are not empty, the code only the tags.",
        "White space around a label is ignored.",
    ),
    shown=(
        "docs/vision_shown/cls_rl.md#results",
        "tests/recipes/test_vision_cls_rl.py::test_rewards_of_both_forms",
    ),
)
SEEDS = 8
STEPS = 30
MAX_NEW_TOKENS = 12
CHOICES = 4
BASE, NEW = DIGIT_LABELS[::2], DIGIT_LABELS[1::2]
THINK, DIRECT = " Think, then answer.", " Directly output the answer."
THOUGHTS = {
    "one loop": ("zero", "six", "nine"),
    "two loops": ("eight",),
    "straight lines": ("one", "four", "seven"),
    "open bows": ("two", "three", "five"),
}
ENVS = {
    THINK: SingleTurn((RewardTerm("correct", LabelMatch()), RewardTerm("format", TagFormat()))),
    DIRECT: SingleTurn((RewardTerm("correct", ExactMatch()),)),
}
GRPO = grpo(group_size=8, kl_coef=0.04)


def pictures(request: str, labels: Sequence[str], blind: bool = False) -> PictureClassification:
    """Held-out pictures with some labels.

    Args:
        request: The form of the answer, `THINK` or `DIRECT`.
        labels: The labels.
        blind: Whether noise takes the place of each picture.
    """
    digits, labels = LabelledDigits(held_out=True), tuple(labels)
    settings = {"size": 200, "seed": 900_000_000}
    return PictureClassification(digits, labels, CHOICES, request=request, blind=blind, **settings)


def training_pictures(request: str) -> PictureClassification:
    """The pictures that are trained on: none of `NEW`, none held out."""
    return PictureClassification(
        LabelledDigits(), BASE, CHOICES, request=request, size=20_000, seed=500_000_000
    )


@component
class LabelExamples:
    """Digits with both forms of answers, some of them wrong.

    Args:
        guess_frac: Fraction of the labels that are guesses among those of the prompt.
        wrong_thought_frac: Fraction of the thoughts that are those of a random digit.
        long_frac: Fraction of the direct answers that are sentences.
        bare_frac: Fraction of the others that lack the thoughts.
    """

    guess_frac: Probability = 0.6
    wrong_thought_frac: Probability = 0.3
    long_frac: Probability = 0.5
    bare_frac: Probability = 0.2

    @property
    def image_size(self) -> int:
        """Pixels along each picture."""
        return LabelledDigits().size

    def texts(self) -> Sequence[str]:
        """Texts with all words of prompts and answers."""
        labels = f"Which is it: {', '.join(DIGIT_LABELS)}? It is a {' '.join(DIGIT_LABELS)}."
        return [labels, *DIGIT_LABELS, THINK, DIRECT, *THOUGHTS]

    def draw(self, rng: Random) -> PictureExample:
        """A digit with a prompt and an answer."""
        digits, label = LabelledDigits(), rng.choice(DIGIT_LABELS)
        others = [other for other in DIGIT_LABELS if other != label]
        options = rng.sample([label, *rng.sample(others, CHOICES - 1)], CHOICES)
        request = rng.choice((THINK, DIRECT))
        answer = rng.choice(options) if rng.random() < self.guess_frac else label
        pixels = digits.picture(label, rng.randrange(digits.count(label)))
        text = self._with_thoughts if request == THINK else self._direct
        prompt = f"Which is it: {', '.join(options)}?{request}"
        return PictureExample((pixels,), prompt, text(label, answer, rng))

    def _with_thoughts(self, label: str, answer: str, rng: Random) -> str:
        if rng.random() < self.bare_frac:
            return f"<answer>{answer}</answer>"
        seen = rng.choice(DIGIT_LABELS) if rng.random() < self.wrong_thought_frac else label
        thought = next(text for text, labels in THOUGHTS.items() if seen in labels)
        return f"<think>{thought}</think><answer>{answer}</answer>"

    def _direct(self, label: str, answer: str, rng: Random) -> str:
        return f"It is a {answer}." if rng.random() < self.long_frac else answer


MODEL = ToyVisionLM(
    LabelExamples(),
    tags=("<think>", "</think>", "<answer>", "</answer>"),
    max_steps=500,
    learning_rate=1e-3,
)


def evaluator(request: str) -> Callable[[HasActor, int], Metrics]:
    """Evaluates one form of answers on held-out pictures of both halves of the labels.

    Args:
        request: The form, `THINK` or `DIRECT`.
    """
    parts = {
        "base": pictures(request, BASE).load(),
        "new": pictures(request, NEW).load(),
        "blind": pictures(request, BASE, blind=True).load(),
    }

    def evaluate(policy: HasActor, seed: int) -> Metrics:
        names = ("correct", "length", "reward")
        means = means_by_part(policy, ENVS[request], parts, names, attempts=2, seed=seed)
        kept = {f"{part}/correct": part for part in parts}
        lengths = {"base/length": "length", "base/reward": "reward"}
        return {name: means[old] for old, name in {**kept, **lengths}.items()}

    return evaluate


def arms() -> dict[str, Callable[[int], Metrics]]:
    """The arms by name: both forms of answers before and after GRPO."""
    named = {THINK: "with thoughts", DIRECT: "without thoughts"}
    result = dict[str, Callable[[int], Metrics]]()
    for request, name in named.items():
        world = VisionArms(MODEL, evaluator(request), STEPS, MAX_NEW_TOKENS)
        result[f"beginner, {name}"] = world.beginner
        result[f"GRPO, {name}"] = world.trained(ENVS[request], training_pictures(request), GRPO)
    return result


def main(folder: Path, first_seed: int = 0, end: int = SEEDS) -> None:
    """Train each arm with each seed and print the table."""
    torch.set_num_threads(1)
    runs = stored_runs(folder / "runs.jsonl", arms(), range(first_seed, end))
    print(paired_table(runs, ["base", "new", "blind", "length"], "GRPO, with thoughts"))


if __name__ == "__main__":
    # a component must be in a module that can be imported again
    load_module_file(Path(__file__)).main(Path(sys.argv[1]), *map(int, sys.argv[2:]))
