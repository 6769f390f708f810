"""VLAA-Thinker: GRPO with a reward per kind of question, and supervised thoughts before it.

Chen et al., 2025, arXiv:2504.11468. Five kinds of questions about scenes are routed to five
rewards. The beginner answers after a word of thought. One arm first imitates an expert's long
thoughts with right answers, on 512 questions, and is then trained as the other.

Named before the first run of all seeds: the mean reward on held-out questions of supervised
training followed by GRPO, minus that of GRPO alone; the paper's claim is that it is below 0.

python recipes/vision/vlaa_thinker.py FOLDER [FIRST_SEED END]
"""

import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import torch
from mixed_questions import (
    BOXES,
    FRACTIONS,
    KINDS,
    CaptionScore,
    MixedExamples,
    MixedQuestions,
)

from grupo.algo.advantages import identity
from grupo.algo.aggregation import token_mean
from grupo.algo.losses import NLL
from grupo.core.paper import Paper, Source
from grupo.envs import RewardTerm, SingleTurn
from grupo.evidence.claims.paired_table import paired_table
from grupo.evidence.claims.stored_runs import Metrics, stored_runs
from grupo.evidence.claims.tiny_lm import trained
from grupo.evidence.claims.vision_arms import means_by_part, vision_policy, vision_recipe
from grupo.method import Method
from grupo.methods.grpo import grpo
from grupo.models.vision_lm import VisionLM
from grupo.rewards import (
    AboveReference,
    BoxIoU,
    ByColumn,
    MathEqual,
    MultipleChoice,
    NumberWithin,
    Route,
    answer_after_thoughts,
)
from grupo.rollouts.evaluate import HasActor
from grupo.rollouts.samplers import DemonstrationSampler, SolutionColumn
from grupo.toy.vision_lm import ToyVisionLM, ensure_trained_vision

PAPER = Paper(
    title="SFT or RL? An Early Investigation into Training R1-Like Reasoning Large Vision-Language"
    " Models",
    kind="reward",
    use="Questions on pictures are of several kinds: numbers, options, formulas, boxes, texts.",
    tags=("reward", "sft", "multimodal"),
    catalogue=("vlaa-thinker",),
    source=Source(
        "memory",
        "the README of UCSC-VLAA/VLAA-Thinking confirms the five kinds; training code and section"
        " 4 of the paper could not be opened",
    ),
    checked=("golden", "run"),
    missing=("The data sets and their six steps; `LearnedReward` or a judge scores open answers.",),
    deviations=(
        "The coefficient of open answers is 4 here, for scores from 0 to 1; the paper's value is"
        " not known.",
        "A program scores captions, in place of a reward model.",
    ),
    shown=(
        "docs/vision_shown/vlaa_thinker.md#results",
        "tests/recipes/test_vision_vlaa_thinker.py::test_each_kind_has_its_own_reward",
    ),
)
SEEDS = 8
STEPS, SFT_STEPS = 40, 60
MAX_NEW_TOKENS = 56
EXTRACT = answer_after_thoughts
REWARDS = {
    "digit": NumberWithin(extract=EXTRACT),
    "option": MultipleChoice(EXTRACT),
    "math": MathEqual(EXTRACT),
    "box": BoxIoU(EXTRACT),
    "caption": AboveReference(CaptionScore(), coef=4.0, extract=EXTRACT),
}
ROUTER = ByColumn("kind", tuple(Route(kind, reward) for kind, reward in REWARDS.items()))
ENV = SingleTurn((RewardTerm("routed", ROUTER),))
TASKS = MixedQuestions()
EXPERT_TASKS = MixedQuestions(512, seed=700_000_000)
PARTS = {
    **{kind: MixedQuestions(60, 900_000_000, kind) for kind in KINDS},
    "blind": MixedQuestions(100, 900_000_000, blind=True),
}
MODEL = ToyVisionLM(
    MixedExamples(),
    tags=("<think>", "</think>", "<answer>", "</answer>", *BOXES, *FRACTIONS),
    tower_layers=2,
    text_layers=3,
    max_steps=1600,
)
GRPO = grpo(group_size=8, kl_coef=0.0)
SFT = Method(
    sampler=DemonstrationSampler(SolutionColumn()),
    advantage=identity,
    loss=NLL(),
    aggregation=token_mean,
)


def evaluate(policy: HasActor, seed: int) -> Metrics:
    """The mean reward of each kind on held-out questions, and of all; also without sight."""
    parts = {name: tasks.load() for name, tasks in PARTS.items()}
    means = means_by_part(policy, ENV, parts, ("reward", "length"), attempts=2, seed=seed)
    both = ("reward", "length")
    return {**means, **{x: sum(means[f"{kind}/{x}"] for kind in KINDS) / len(KINDS) for x in both}}


def imitator(folder: Path) -> VisionLM:
    """The model after supervised training on the expert's answers; it is trained if missing.

    Args:
        folder: Holds the model, which all seeds share.
    """
    beginner = vision_policy(MODEL, MAX_NEW_TOKENS)
    model = folder / "imitator"
    if not model.exists():
        settings = {"steps": SFT_STEPS, "seed": 0, "max_new_tokens": MAX_NEW_TOKENS}
        trained(vision_recipe(MODEL, ENV, EXPERT_TASKS, SFT, **settings)).policy.export(model)
    return replace(beginner, model=str(model))


def arm(policy: Callable[[], VisionLM]) -> Callable[[int], Metrics]:
    """GRPO from a policy.

    Args:
        policy: Returns the policy before RL.
    """

    def run(seed: int) -> Metrics:
        settings = {"steps": STEPS, "seed": seed, "max_new_tokens": MAX_NEW_TOKENS}
        recipe = vision_recipe(MODEL, ENV, TASKS, GRPO, **settings, prompts_per_step=16)
        return evaluate(trained(recipe.replace(policy=policy())).policy, seed)

    return run


def main(folder: Path, first_seed: int = 0, end: int = SEEDS) -> None:
    """Train each arm with each seed and print the table."""
    torch.set_num_threads(1)
    ensure_trained_vision(MODEL)
    beginner = vision_policy(MODEL, MAX_NEW_TOKENS)
    arms = {
        "beginner": lambda seed: evaluate(beginner.build(), seed),
        "SFT": lambda seed: evaluate(imitator(folder).build(), seed),
        "GRPO": arm(lambda: beginner),
        "SFT, then GRPO": arm(lambda: imitator(folder)),
    }
    runs = stored_runs(folder / "runs.jsonl", arms, range(first_seed, end))
    print(paired_table(runs, ["reward", "length", "blind/reward"], "GRPO"))
    print(paired_table(runs, [f"{kind}/reward" for kind in KINDS], "GRPO"))


if __name__ == "__main__":
    main(Path(sys.argv[1]), *map(int, sys.argv[2:]))
