"""Over-optimised likelihoods, measured on the policy's own answers: `docs/small_claims.md`.

Shi et al., 2024, arXiv:2410.11677: when DPO goes too far, the entropy and the probability of the k
likeliest tokens of the policy's own answers fall, and then their quality. A model of 50,000
parameters counts one further, `7 and 12 next `, and most of its demonstrations are wrong. It learns
from pairs of its own right and wrong answers, a quarter of them with the labels exchanged, for more
updates than is good. After every `STEPS_BETWEEN` updates it answers prompts that no pair has, and
the alarm of `grupo doctor` reads both numbers of these answers: both lower at three evaluations in
a row. The alarm sees no reward.

Named before the first run of these seeds: `correct`, the accuracy on further prompts, of the policy
at the first alarm, or at the end without one, minus that of the policy at the end, by the exact
sequential sign-flip test with looks at 8, 12 and 16 pairs; it is to be greater. `best` is the
policy whose answers to the prompts that the alarm reads are right most often, the upper bound,
which must win first; `alarm on the pairs` reads the same numbers of the pairs that are trained on.

python recipes/small_claims/over_optimised.py FILE [FIRST_SEED END]
"""

import random
import sys
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import cached_property, partial
from pathlib import Path
from statistics import fmean
from typing import Any

import torch

from grupo.algo.losses.top_tokens import TOP_SIGNALS, TopTokenMetrics
from grupo.compare.sequential_design import SequentialDesign
from grupo.core.types import Task
from grupo.envs import RewardTerm, SingleTurn
from grupo.evidence.claims.paired_table import paired_table
from grupo.evidence.claims.sequential_table import sequential_table
from grupo.evidence.claims.stored_runs import Metrics, stored_runs
from grupo.evidence.claims.tiny_lm import mean_terms, train_tiny_lm
from grupo.methods.dpo import dpo
from grupo.models.causal_lm import CausalLM
from grupo.pipeline import best_against_worst
from grupo.recipe import Recipe
from grupo.report.checks.over_optimisation import fall_together
from grupo.rewards import ExactMatch
from grupo.rollouts.evaluate import HasActor, run_rollouts
from grupo.tasks import InMemoryTasks
from grupo.training.learner import Learner
from grupo.training.update.collate import collate
from grupo.training.update.signals import signals_of_all_rows
from grupo.util.rng import derive_key

LARGEST, WRONG = 14, 0.6  # number; share of demonstrations with a random number
FLIPPED = 0.25  # share of pairs with the labels exchanged
START_STEPS, ATTEMPTS = 200, 8  # updates of the start; answers of which a pair is taken
EVALUATIONS, STEPS_BETWEEN = 10, 4
LEARNING_RATE, BETA = 3e-4, 0.05
BASELINE, BEST, ALARM, GIVEN = "end", "best", "alarm", "alarm on the pairs"
METRICS = ("correct", "step", *TOP_SIGNALS)
DESIGN = SequentialDesign(max_pairs=16, looks=(8, 12, 16))
ENV = SingleTurn((RewardTerm("correct", ExactMatch()),))


def prompts() -> list[Task]:
    """All prompts of two numbers, of which the first has no meaning, in an order that is fixed."""
    numbers = range(LARGEST + 1)
    tasks = [Task(f"{a},{b}", f"{a} and {b} next ", str(b + 1)) for a in numbers for b in numbers]
    return random.Random(0).sample(tasks, len(tasks))


PAIRED, READ, TESTED = prompts()[:112], prompts()[112:168], prompts()[168:]


def demonstrate(task: Task) -> list[str]:
    """Four answers, most of which are random numbers."""
    rng = random.Random(task.key)
    wrong = [str(rng.randint(0, LARGEST + 1)) for _ in range(4)]
    return [x if rng.random() < WRONG else str(task.reference_answer) for x in wrong]


def _exchanged(row: Mapping[str, Any]) -> Mapping[str, Any]:
    return {**row, "chosen": row["rejected"], "rejected": row["chosen"]}


def first_alarm(lines: Sequence[Metrics], prefix: str = "") -> int:
    """The number of the evaluation of the first alarm; that of the last one if there is none.

    Args:
        lines: The evaluations.
        prefix: Of the names of both numbers.

    >>> falling = [{"entropy_top10": 1 - i, "mass_top10": 1 - i} for i in range(4)]
    >>> first_alarm(falling), first_alarm(falling[:2])
    (2, 1)
    """
    entropy, mass = ([line[f"{prefix}{name}"] for line in lines] for name in TOP_SIGNALS)
    ends = range(1, len(lines) + 1)
    return next((i - 1 for i in ends if fall_together(entropy[:i], mass[:i])), len(lines) - 1)


def likeliest_tokens(learner: Learner, seed: int) -> Metrics:
    """Entropy and probability of the likeliest tokens of the policy's own answers.

    Args:
        learner: Its policy answers.
        seed: Seed of the answers.
    """
    groups = run_rollouts(learner.policy.actor(derive_key(seed, "read")), ENV, READ, 2)
    batch = collate(groups, learner.policy.encode)
    signals = signals_of_all_rows(learner.policy, learner.policy, batch, TOP_SIGNALS)
    return {name: signals[name][batch.mask].mean().item() for name in TOP_SIGNALS}


class Arms:
    """The arms of the table, which stop the same run at different evaluations.

    Args:
        folder: An empty folder for the policy that all runs start from.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.evaluated: dict[int, Sequence[Metrics]] = {}

    @cached_property
    def model(self) -> str:
        """The folder of the policy that all runs start from."""
        return str(train_tiny_lm(self.folder, prompts(), demonstrate, steps=START_STEPS))

    def recipe(self, tasks: Sequence[Task], seed: int) -> Recipe:
        """DPO on pairs of answers.

        Args:
            tasks: The tasks, with pairs as columns.
            seed: Seed of the run.
        """
        method = dpo(BETA)
        return Recipe(
            policy=CausalLM(self.model, max_new_tokens=3, tokens_per_microbatch=8192),
            env=ENV,
            tasks=InMemoryTasks(tasks),
            eval_tasks=0,
            method=method.replace(loss=method.loss + TopTokenMetrics()),
            max_steps=EVALUATIONS * STEPS_BETWEEN,
            prompts_per_step=16,
            learning_rate=LEARNING_RATE,
            seed=seed,
        )

    def pairs(self, policy: HasActor, seed: int) -> list[Task]:
        """Prompts with a right and a wrong answer of the policy, a quarter of them exchanged.

        Args:
            policy: Generates the answers.
            seed: Seed of the answers.
        """
        groups = run_rollouts(policy.actor(derive_key(seed, "pairs")), ENV, PAIRED, ATTEMPTS)
        rng = random.Random(seed)
        return [
            replace(group.task, columns=_exchanged(row) if rng.random() < FLIPPED else dict(row))
            for group in groups
            for row in best_against_worst(group.rollouts, bool)
        ]

    def evaluations(self, seed: int) -> Sequence[Metrics]:
        """Accuracy and likeliest tokens after every `STEPS_BETWEEN` updates.

        Args:
            seed: Seed of the pairs and of the run.
        """
        if seed not in self.evaluated:
            start = self.recipe((), seed).policy.build()
            learner = Learner(self.recipe(self.pairs(start, seed), seed))
            self.evaluated[seed] = [self._evaluation(learner, seed) for _ in range(EVALUATIONS)]
        return self.evaluated[seed]

    def _evaluation(self, learner: Learner, seed: int) -> Metrics:
        """The evaluation after further updates, with means of the pairs of these updates."""
        steps = [learner.step().metrics for _ in range(STEPS_BETWEEN)]
        return {
            "step": float(learner.state.step),
            "read": mean_terms(learner.policy, ENV, READ, seed=seed)["correct"],
            "correct": mean_terms(learner.policy, ENV, TESTED, seed=seed)["correct"],
            **likeliest_tokens(learner, seed),
            **{f"pairs/{x}": fmean(step[f"policy/{x}"] for step in steps) for x in TOP_SIGNALS},
        }

    def run(self, arm: str, seed: int) -> Metrics:
        """The evaluation at which an arm stops.

        Args:
            arm: Name of the arm.
            seed: Seed of the run.
        """
        lines = self.evaluations(seed)
        stops: Mapping[str, int] = {
            BASELINE: len(lines) - 1,
            BEST: max(range(len(lines)), key=lambda i: lines[i]["read"]),
            ALARM: first_alarm(lines),
            GIVEN: first_alarm(lines, "pairs/"),
        }
        return {name: lines[stops[arm]][name] for name in METRICS}


def main(file: Path, seeds: Sequence[int]) -> None:
    """Run what is missing in the file and print the tables."""
    torch.set_num_threads(1)
    with tempfile.TemporaryDirectory() as name:
        arms = Arms(Path(name))
        chosen = {arm: partial(arms.run, arm) for arm in (BASELINE, BEST, ALARM, GIVEN)}
        runs = stored_runs(file, chosen, seeds)
    if len(seeds) > 1:
        print(paired_table(runs, METRICS, BASELINE))
        print(
            sequential_table({x: runs[x] for x in (BASELINE, ALARM)}, "correct", BASELINE, DESIGN)
        )


if __name__ == "__main__":
    bounds = [int(text) for text in sys.argv[2:4]] or [0, 16]
    main(Path(sys.argv[1]), range(*bounds))
