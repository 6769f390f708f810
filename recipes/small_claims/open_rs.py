"""Open-RS in a small model: three experiments that differ in data or reward.

Writes a table of `docs/small_claims.md`: hard sums, hard and easy sums, a cosine of the length.
"""

import tempfile
from pathlib import Path

import torch
from verbose_sums import (
    CORRECT,
    EASY,
    HARD,
    MAX_CHARS,
    SEEDS,
    TAGS,
    curve,
    demonstrate,
    env,
    recipe,
    tasks,
)

from grupo.core.paper import Paper, Source
from grupo.envs import RewardTerm
from grupo.evidence.claims.paired_table import paired_table
from grupo.evidence.claims.tiny_lm import mean_terms, train_tiny_lm
from grupo.rewards import CosineReward

PAPER = Paper(
    title="Reinforcement Learning for Reasoning in Small LLMs: What Works and What Doesn't",
    kind="pipeline",
    use="A small model, a small budget: which data and which reward, and when to stop.",
    tags=("length", "reward"),
    catalogue=("open-rs",),
    source=Source(
        "code",
        "knoveleng/open-rs, src/open_r1/rewards.py and recipes/grpo.yaml, as the catalogue cites"
        " them",
    ),
    checked=("golden",),
    missing=("A model of 1.5 billion parameters and its 7,000 problems.",),
    deviations=(
        "Lengths are scaled to the sums, 120 characters; steps and learning rate to the model.",
        "The cosine stays at its end beyond the length; the code goes on along the curve.",
        "Temperature 1 instead of 0.7.",
    ),
    shown=(
        "docs/small_claims.md#what-works-for-a-small-model",
        "tests/rewards/test_length_shaped.py::test_experiment_3_of_open_rs_pays_format_once_and_cosine_twice",
    ),
)
ACCURACY = RewardTerm("accuracy", CORRECT)
COSINE = RewardTerm("cosine", CosineReward(CORRECT, MAX_CHARS), 2.0)
EXPERIMENTS = {
    "1: accuracy, hard": (env(ACCURACY), HARD),
    "2: accuracy, hard and easy": (env(ACCURACY), [*HARD, *EASY]),
    "3: cosine, hard and easy": (env(COSINE), [*HARD, *EASY]),
}


def main() -> None:
    """Train the model, then each experiment with all seeds; print the table."""
    torch.set_num_threads(1)
    with tempfile.TemporaryDirectory() as folder:
        every = tasks([*HARD, *EASY])
        model = str(train_tiny_lm(Path(folder), every, demonstrate, steps=900, tags=TAGS))
        start = recipe(model, env(ACCURACY), HARD, 0).policy.build()
        before = [mean_terms(start, env(ACCURACY), tasks(HARD), seed=seed) for seed in range(SEEDS)]
        runs = {"start": [{**found, "correct_early": found["correct"]} for found in before]}
        for name, (rewards, prompts) in EXPERIMENTS.items():
            runs[name] = [curve(recipe(model, rewards, prompts, s)) for s in range(SEEDS)]
    print(paired_table(runs, ["correct_early", "correct", "format", "length"], "start"))


if __name__ == "__main__":
    main()
