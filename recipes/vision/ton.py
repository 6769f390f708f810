"""TON: supervised examples of which half have lost their thoughts, then GRPO without a length term.

Wang et al., 2025, arXiv:2505.16854. Half of the questions are easy, for the colour of a thing in a
scene; half are hard, for the number of things of a colour, where the thoughts count. Beginners are
trained with and without thought dropout on examples of which some are wrong.

Named before the first run of all seeds: the share of empty thoughts on easy questions minus that on
hard ones, `selective`, of TON minus that of its beginner.

python recipes/vision/ton.py FOLDER [FIRST_SEED END]
"""

import sys
from pathlib import Path

import torch
from easy_and_hard import KINDS, EasyAndHardQuestions, ThoughtfulExamples

from grupo.core.paper import Paper, Source
from grupo.envs import RewardTerm, SingleTurn
from grupo.evidence.claims.paired_table import paired_table
from grupo.evidence.claims.stored_runs import Metrics, stored_runs
from grupo.evidence.claims.vision_arms import VisionArms, means_by_part
from grupo.methods.grpo import grpo
from grupo.rewards import ExactMatch, InsideTag, RegexMatch, TagFormat
from grupo.rollouts.evaluate import HasActor
from grupo.toy.vision_lm import ToyVisionLM

PAPER = Paper(
    title="Think or Not? Selective Reasoning via Reinforcement Learning for Vision-Language Models",
    kind="pipeline",
    use="Some questions need thoughts and others do not, and answers should be short.",
    tags=("length", "sft", "multimodal"),
    catalogue=("ton",),
    source=Source(
        "code",
        "kokolerk/TON: src/r1-v/src/open_r1/grpo.py and grpo_gui.py as the catalogue records them,"
        " and README.md",
    ),
    checked=("golden", "run"),
    missing=(
        "Thoughts that the model writes itself from a question and its answer: `CollectStage` can"
        " collect them.",
        "The reward of actions on screens: an action's kind, and a click near enough.",
    ),
    deviations=("Supervised thoughts are written by a program.",),
    shown=(
        "docs/vision_shown/ton.md#results",
        "tests/rollouts/samplers/test_thought_dropout.py::test_half_of_the_thoughts_are_dropped",
    ),
)
SEEDS = 8
STEPS = 40
MAX_NEW_TOKENS = 28
ENV = SingleTurn(
    (
        RewardTerm("correct", ExactMatch(InsideTag("answer"))),
        RewardTerm("format", TagFormat(may_be_empty=("think",))),
        RewardTerm("skip", RegexMatch(r"^<think>\s*</think>"), weight=0.0),
    )
)
PARTS = {
    **{kind: EasyAndHardQuestions(120, 900_000_000, kind) for kind in KINDS},
    "blind": EasyAndHardQuestions(120, 900_000_000, blind=True),
}


def evaluate(policy: HasActor, seed: int) -> Metrics:
    """Accuracy, empty thoughts and lengths on held-out questions of both kinds."""
    parts = {name: tasks.load() for name, tasks in PARTS.items()}
    means = means_by_part(policy, ENV, parts, ("correct", "skip", "length"), attempts=2, seed=seed)
    both = {
        name: (means[f"easy/{name}"] + means[f"hard/{name}"]) / 2 for name in ("correct", "length")
    }
    return {**means, **both, "selective": means["easy/skip"] - means["hard/skip"]}


def world(dropout: float) -> VisionArms:
    """The arms of a beginner.

    Args:
        dropout: Probability that an example has lost its thoughts.
    """
    tags = ("<think>", "</think>", "<answer>", "</answer>")
    model = ToyVisionLM(ThoughtfulExamples(dropout), tags=tags, max_steps=600)
    return VisionArms(model, evaluate, STEPS, MAX_NEW_TOKENS, prompts_per_step=16)


def main(folder: Path, first_seed: int = 0, end: int = SEEDS) -> None:
    """Train each arm with each seed and print the tables."""
    torch.set_num_threads(1)
    full, dropped = world(0.0), world(0.5)
    method = grpo(group_size=8, kl_coef=0.0)
    arms = {
        "beginner": full.beginner,
        "GRPO": full.trained(ENV, EasyAndHardQuestions(), method),
        "beginner with dropout": dropped.beginner,
        "TON": dropped.trained(ENV, EasyAndHardQuestions(), method),
    }
    runs = stored_runs(folder / "runs.jsonl", arms, range(first_seed, end))
    skips = {name: runs[name] for name in ("beginner with dropout", "TON")}
    print(paired_table(skips, ["selective", "easy/skip", "hard/skip"], "beginner with dropout"))
    accuracies = ["correct", "easy/correct", "hard/correct", "length", "blind/correct"]
    print(paired_table(runs, accuracies, "GRPO"))


if __name__ == "__main__":
    main(Path(sys.argv[1]), *map(int, sys.argv[2:]))
