"""The claim of Train Long, Think Short in a small environment: `docs/small_claims.md`.

A budget that shrinks to 8 tokens against the same budget from the beginning, and a linear decay
against an exponential one.
"""

from functools import partial

import torch

from grupo.algo.filters import keep_all
from grupo.core.numbers import Positive
from grupo.core.schedules import GeometricSteps, LinearSteps
from grupo.envs import RewardTerm, SingleTurn
from grupo.evidence.claims.claim import Setting
from grupo.evidence.claims.environments import PaddedAnswers
from grupo.evidence.claims.paired_table import paired_table
from grupo.evidence.claims.reference_arms import REFERENCE_ARMS
from grupo.evidence.claims.rewarded import (
    RewardedArm,
    ScoredBefore,
    items_as_text,
    tabular_correct,
    train_rewarded,
)
from grupo.method import Method
from grupo.methods.grpo import grpo
from grupo.rewards import BudgetBand, BudgetTriangle
from grupo.rewards.base import Reward
from grupo.rollouts.curricula import ShuffledTasks, StatedBudget

SEEDS = 8
START, END = 24, 8
SETTING = Setting(
    "padded_budget",
    "The padded answers of docs/claims.md, whose untrained answers have about 24 tokens.",
    PaddedAnswers(num_tasks=32, filler_logit=2.5, max_length=32),
    steps=120,
    learning_rate=0.05,
)
METRICS = ("success", "length", "short_success")


def budget_method(budget: Positive, length: Reward) -> Method:
    """GRPO on 0.6 correct + 0.3 length: the paper's weights that favour correctness."""
    env = SingleTurn(
        (RewardTerm("correct", tabular_correct, 0.6), RewardTerm("length", length, 0.3))
    )
    return grpo(kl_coef=0.0).replace(
        curriculum=StatedBudget(ShuffledTasks(), budget),
        filter=ScoredBefore(keep_all, env, items_as_text),
    )


ARMS = {
    "fixed budget": budget_method(END, BudgetTriangle()),
    "exponential decay": budget_method(GeometricSteps(START, END), BudgetTriangle()),
    "linear decay": budget_method(LinearSteps(START, END), BudgetTriangle()),
    "exponential decay, band": budget_method(GeometricSteps(START, END), BudgetBand()),
    "no reward for length": grpo(kl_coef=0.0),
    "oracle": REFERENCE_ARMS["oracle"],
}


def main() -> None:
    """Train all arms and print the tables."""
    torch.set_num_threads(1)
    train = partial(train_rewarded, SETTING)
    runs = {
        name: [train(RewardedArm(name, built=method), seed) for seed in range(SEEDS)]
        for name, method in ARMS.items()
    }
    print(paired_table(runs, METRICS, "fixed budget"))
    linear = {name: runs[name] for name in ("exponential decay", "linear decay")}
    print(paired_table(linear, METRICS, "exponential decay"))


if __name__ == "__main__":
    main()
