"""Train Long, Think Short with a policy that reads its budget: `docs/small_claims.md`.

The prompt `3 4 1 use 12 : ` states a budget in tokens; the sum is modulo 5. A working of 12 tokens,
`3 + 4 = 2 , 2 + 1 = 3`, writes each addition; one of 3 writes the totals alone, `2 3`, and is wrong
more often in the demonstrations; one of 2 guesses the last total. The policy that all arms start
from, a model of 50,000 parameters, has learned from workings of which two in three fit the stated
budget.

Named before the first run of these seeds: `correct`, the accuracy on held-out sums whose prompts
state the final budget, of a budget that shrinks exponentially, minus that of the final budget from
the beginning, at equal generated tokens, by the exact sequential sign-flip test with looks at 8, 12
and 16 pairs; it is to be greater. `length` is that of the same answers, and `long_length` that of
answers to the first budget. Supervised training on right totals, in as many steps as the final
budget has, is the upper bound, which must win first.

python recipes/small_claims/read_budget.py FILE [FIRST_SEED END]    # FILE has a line for each run
"""

import random
import sys
import tempfile
from collections.abc import Sequence
from functools import cached_property, partial
from itertools import product
from pathlib import Path

import torch

from grupo.compare.sequential_design import SequentialDesign
from grupo.core.numbers import Positive
from grupo.core.schedules import GeometricSteps
from grupo.core.types import Task
from grupo.envs import RewardTerm, SingleTurn
from grupo.evidence.claims.hard_sums import trained_for_tokens
from grupo.evidence.claims.paired_table import paired_table
from grupo.evidence.claims.sequential_table import sequential_table
from grupo.evidence.claims.stored_runs import Metrics, stored_runs
from grupo.evidence.claims.tiny_lm import mean_terms, train_tiny_lm, trained
from grupo.method import Method
from grupo.methods.grpo import grpo
from grupo.methods.sft import sft
from grupo.models.causal_lm import CausalLM
from grupo.recipe import EarlyStopping, Recipe
from grupo.rewards import BudgetTriangle, ExactMatch
from grupo.rollouts.curricula import ShuffledTasks, StatedBudget
from grupo.rollouts.evaluate import HasActor
from grupo.tasks import InMemoryTasks
from grupo.tasks.length_budget import with_budget

FIRST, FINAL = 12, 3  # budgets in tokens
WORKINGS = {12: ("{a} + {b} = {t} , {t} + {c} = {u}", 0.05), 3: ("{t} {u}", 0.4), 2: ("{u}", 0.6)}
BASE = 5  # digits are below it
START_STEPS, MAX_TOKENS, STEPS = 700, 30_000, 60
SENTENCE = "use {budget} : "
BASELINE, DECAY, BOUND = "final budget", "exponential decay", "right totals"
METRICS = ("correct", "length", "long_length", "steps")
DESIGN = SequentialDesign(max_pairs=16, looks=(8, 12, 16))


def last_number(text: str) -> str:
    """The last word of an answer.

    >>> last_number("2 3")
    '3'
    """
    return text.split()[-1] if text.split() else ""


ENV = SingleTurn(
    (
        RewardTerm("correct", ExactMatch(last_number), 0.6),
        RewardTerm("budget", BudgetTriangle(), 0.3),
    )
)


def sums(start: int, end: int) -> list[Task]:
    """Sums of three digits modulo `BASE`, from an order that is fixed.

    Args:
        start: Number of the first sum, from 0.
        end: Number of the sum behind the last one, at most 125.
    """
    digits = [*product(range(BASE), repeat=3)]
    return [_sum_task(x) for x in random.Random(0).sample(digits, len(digits))[start:end]]


def _sum_task(digits: Sequence[int]) -> Task:
    prompt = f"{' '.join(map(str, digits))} "
    columns = {"digits": list(digits), "solution": working(digits, FINAL)}
    return Task(prompt, prompt, str(sum(digits) % BASE), columns=columns)


def working(digits: Sequence[int], length: int, rng: random.Random | None = None) -> str:
    """A working of a length, with errors if there is a generator.

    Args:
        digits: The digits of a sum.
        length: Tokens of the working with its end token.
        rng: Draws the errors.

    >>> working([3, 4, 1], 12), working([3, 4, 1], 3)
    ('3 + 4 = 2 , 2 + 1 = 3', '2 3')
    """
    form, error = WORKINGS[length]
    a, b, c = digits
    t, u = (a + b) % BASE, (a + b + c) % BASE
    if rng and rng.random() < error:
        t, u = rng.randrange(BASE), rng.randrange(BASE)
    return form.format(a=a, b=b, c=c, t=t, u=u)


def demonstrate(task: Task) -> list[str]:
    """Three workings, of which two in three fit the budget in the mean."""
    rng, budget = random.Random(str(task.prompt)), task.columns["budget"]
    fits = max(length for length in WORKINGS if length <= budget)
    lengths = [fits if rng.random() < 0.5 else rng.choice([*WORKINGS]) for _ in range(3)]
    return [working(task.columns["digits"], length, rng) for length in lengths]


class Arms:
    """The arms of the table, by seed.

    Args:
        folder: An empty folder for the policy that all arms start from.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    @cached_property
    def model(self) -> str:
        """The folder of the policy that all arms start from."""
        tasks = [
            with_budget(x, budget, SENTENCE) for x in sums(0, 125) for budget in range(2, FIRST + 1)
        ]
        return str(train_tiny_lm(self.folder, tasks, demonstrate, steps=START_STEPS))

    def recipe(self, method: Method, budget: Positive, seed: int) -> Recipe:
        """Train on 0.6 correct + 0.3 length, with a budget in the prompts.

        Args:
            method: The method.
            budget: Tokens that an answer should have.
            seed: Seed of the run.
        """
        curriculum = StatedBudget(ShuffledTasks(), budget, SENTENCE)
        return Recipe(
            policy=CausalLM(self.model, max_new_tokens=16, tokens_per_microbatch=8192),
            env=ENV,
            tasks=InMemoryTasks(sums(0, 75)),
            eval_tasks=0,
            method=method.replace(curriculum=curriculum),
            max_steps=1000,
            prompts_per_step=12,
            learning_rate=5e-4,
            early_stopping=EarlyStopping(max_tokens=MAX_TOKENS),
            seed=seed,
        )

    def start(self, seed: int) -> Metrics:
        """The policy that all arms start from."""
        policy = self.recipe(grpo(kl_coef=0.0), FINAL, seed).policy.build()
        return {**measured(policy, seed), "steps": 0.0}

    def budgeted(self, budget: Positive, seed: int) -> Metrics:
        """GRPO with a budget."""
        learner = trained_for_tokens(self.recipe(grpo(kl_coef=0.0), budget, seed))
        return {**measured(learner.policy, seed), "steps": float(learner.state.step)}

    def right_totals(self, seed: int) -> Metrics:
        """Supervised training on right workings of the final budget."""
        recipe = self.recipe(sft("solution"), FINAL, seed)
        learner = trained(recipe.replace(max_steps=STEPS, early_stopping=EarlyStopping()))
        return {**measured(learner.policy, seed), "steps": float(STEPS)}


def measured(policy: HasActor, seed: int) -> Metrics:
    """Accuracy and length at the final budget, and length at the first one."""
    short, long = (
        mean_terms(
            policy,
            ENV,
            [with_budget(x, budget, SENTENCE) for x in sums(75, 125)],
            attempts=16,
            seed=seed,
        )
        for budget in (FINAL, FIRST)
    )
    lengths = {"length": short["length"], "long_length": long["length"]}
    return {"correct": short["correct"], **lengths}


def main(file: Path, seeds: Sequence[int]) -> None:
    """Run what is missing in the file and print the tables."""
    torch.set_num_threads(1)
    with tempfile.TemporaryDirectory() as name:
        arms = Arms(Path(name))
        chosen = {
            "start": arms.start,
            BASELINE: partial(arms.budgeted, FINAL),
            DECAY: partial(arms.budgeted, GeometricSteps(FIRST, FINAL)),
            BOUND: arms.right_totals,
        }
        runs = stored_runs(file, chosen, seeds)
    if len(seeds) > 1:
        print(paired_table(runs, METRICS, BASELINE))
        tested = {name: runs[name] for name in (BASELINE, DECAY)}
        print(sequential_table(tested, "correct", BASELINE, DESIGN))


if __name__ == "__main__":
    bounds = [int(text) for text in sys.argv[2:4]] or [0, 16]
    main(Path(sys.argv[1]), range(*bounds))
