"""Fast-Math-R1 in a small model: long supervised training, then GRPO for short answers.

Writes a table of `docs/small_claims.md`. The pipeline is the same as data:

grupo train recipes/small_claims/fast_math.py:PIPELINE --model MODEL --run runs/fast
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
from grupo.evidence.claims.tiny_lm import demonstration_recipe, mean_terms, train_tiny_lm
from grupo.pipeline import Pipeline, Stage
from grupo.rewards import CosineReward, RelativeLength

PAPER = Paper(
    title="A Practical Two-Stage Recipe for Mathematical LLMs: Maximizing Accuracy with SFT and "
    "Efficiency with Reinforcement Learning",
    kind="pipeline",
    use="Answers are correct after long supervised training, and too long.",
    tags=("length", "reward", "sft"),
    catalogue=("fast-math-r1-two-stage",),
    source=Source(
        "third_party",
        "a fork, ZKBig/kaggle-aimo2-fast-math-r1-test, grpo_rewards.py and train_second_stage.py,"
        " as the plan of the catalogue cites it",
    ),
    checked=("golden",),
    missing=("A model of 14 billion parameters and its data.",),
    deviations=("Lengths are scaled to the sums, 120 characters instead of 30,000.",),
    shown=(
        "docs/small_claims.md#long-supervised-training-then-short-answers",
        "tests/rewards/test_length_shaped.py::test_the_cosine_of_fast_math_makes_long_wrong_answers_better",
    ),
)
SFT_STEPS = 900
EVERY = [*HARD, *EASY]
REWARDS = env(
    RewardTerm("cosine", CosineReward(CORRECT, MAX_CHARS, (1.0, 0.1), (-1.0, -0.1))),
    RewardTerm("brevity", RelativeLength(CORRECT)),
)
PIPELINE = Pipeline(
    (
        Stage(
            "sft",
            demonstration_recipe(Path("model"), tasks(EVERY), demonstrate, steps=SFT_STEPS),
        ),
        Stage("rl", recipe("model", REWARDS, EVERY, seed=0)),
    )
)


def main() -> None:
    """Train both stages, the second with all seeds; print the table."""
    torch.set_num_threads(1)
    with tempfile.TemporaryDirectory() as folder:
        trained = train_tiny_lm(Path(folder), tasks(EVERY), demonstrate, steps=SFT_STEPS, tags=TAGS)
        model = str(trained)
        start = recipe(model, REWARDS, EVERY, 0).policy.build()
        runs = {
            "supervised": [
                mean_terms(start, REWARDS, tasks(HARD), seed=seed) for seed in range(SEEDS)
            ],
            "then GRPO": [curve(recipe(model, REWARDS, EVERY, seed)) for seed in range(SEEDS)],
        }
    print(paired_table(runs, ["correct", "format", "length"], "supervised"))


if __name__ == "__main__":
    main()
