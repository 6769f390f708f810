"""Train Long, Think Short with a policy that reads its budget: `docs/small_claims.md`.

The prompt `7 5 9 3 use 18 : ` states a budget in tokens. A working adds one digit after the other,
`7 + 5 = 2 , 2 + 9 = 1 , 1 + 3 = 4 is 4`, or two at once, which is shorter and goes wrong more
often, and filler words make it longer. The beginner, a model of 50,000 parameters, has been trained
on workings of which half have about the stated length.

Named before the first run of these seeds: `correct`, the accuracy on held-out sums whose prompts
state the final budget, of a budget that shrinks exponentially, minus that of the final budget from
the beginning, at equal generated tokens, by the exact sequential sign-flip test with looks at 8, 12
and 16 pairs; it is to be greater. `length` is that of the same answers, and `length_at_30` that of
answers to a budget of 30 tokens.

python recipes/small_claims/read_budget.py FILE [FIRST_SEED END]    # FILE has a line for each run
"""

import random
import sys
import tempfile
from collections.abc import Sequence
from functools import cached_property
from pathlib import Path

import torch

from grupo.compare.sequential_design import SequentialDesign
from grupo.core.numbers import Positive
from grupo.core.schedules import GeometricSteps
from grupo.core.types import Task
from grupo.envs import RewardTerm, SingleTurn
from grupo.evidence.claims.hard_sums import trained_for_tokens
from grupo.evidence.claims.paired_table import paired_table
from grupo.evidence.claims.published_runs import published_runs
from grupo.evidence.claims.sequential_table import sequential_table
from grupo.evidence.claims.stored_runs import Metrics
from grupo.evidence.claims.tiny_lm import mean_terms, train_tiny_lm
from grupo.methods.grpo import grpo
from grupo.models.causal_lm import CausalLM
from grupo.recipe import EarlyStopping, Recipe
from grupo.rewards import AfterMarker, BudgetTriangle, ExactMatch
from grupo.rollouts.curricula import ShuffledTasks, StatedBudget
from grupo.rollouts.evaluate import HasActor
from grupo.tasks import InMemoryTasks
from grupo.tasks.length_budget import with_budget

START, END, SHOWN = 30, 17, (10, 36)  # budgets of the curriculum; range of those of demonstrations
MAX_TOKENS = 60_000
SENTENCE = "use {budget} : "
FILLER = ("so ", "now ", "well ", "then ")
ERROR, LONG_JUMP_ERROR = 0.06, 0.3  # of an addition of one digit, and of two at once
DESIGN = SequentialDesign(max_pairs=16, looks=(8, 12, 16))
METRICS = ("correct", "length", "length_at_30", "steps")
ENV = SingleTurn(
    (
        RewardTerm("correct", ExactMatch(AfterMarker("is ")), 0.6),
        RewardTerm("budget", BudgetTriangle(), 0.3),
    )
)


def sums(start: int, end: int) -> list[Task]:
    """Sums of four digits, of which the last digit is the answer, from an order that is fixed.

    Args:
        start: Number of the first sum, from 0.
        end: Number of the sum behind the last one, at most 10,000.
    """
    numbers = random.Random(0).sample(range(10_000), 10_000)[start:end]
    return [_sum_task([int(digit) for digit in f"{number:04}"]) for number in numbers]


def _sum_task(digits: Sequence[int]) -> Task:
    prompt = f"{' '.join(map(str, digits))} "
    return Task(prompt, prompt, str(sum(digits) % 10), columns={"digits": list(digits)})


def working(digits: Sequence[int], sizes: Sequence[int], rng: random.Random | None = None) -> str:
    """A working that adds some digits at once in each step, with errors if there is a generator.

    Args:
        digits: The digits of a sum.
        sizes: Number of digits that each step adds.
        rng: Draws the errors.

    >>> working([7, 5, 9, 3], [1, 1, 1])
    '7 + 5 = 2 , 2 + 9 = 1 , 1 + 3 = 4 is 4'
    >>> working([7, 5, 9, 3], [2, 1])
    '7 + 5 + 9 = 1 , 1 + 3 = 4 is 4'
    """
    total, rest, steps = digits[0], list(digits[1:]), []
    for size in sizes:
        added, rest = rest[:size], rest[size:]
        terms = " + ".join(map(str, [total, *added]))
        total = (total + sum(added)) % 10
        if rng and rng.random() < (ERROR if size == 1 else LONG_JUMP_ERROR):
            total = rng.randrange(10)
        steps.append(f"{terms} = {total}")
    return f"{' , '.join(steps)} is {total}"


def demonstrate(task: Task) -> list[str]:
    """Two workings, each with or without regard for the budget."""
    rng = random.Random(task.key)
    return [_demonstration(task, rng) for _ in range(2)]


def _demonstration(task: Task, rng: random.Random) -> str:
    budget = task.columns["budget"] if rng.random() < 0.5 else rng.randint(*SHOWN)
    sizes = [1, 1, 1] if budget >= LENGTHS[1, 1, 1] else [2, 1] if budget >= LENGTHS[2, 1] else [3]
    filler = max(0, budget - LENGTHS[tuple(sizes)])
    words = "".join(rng.choice(FILLER) for _ in range(filler))
    return words + working(task.columns["digits"], sizes, rng)


# tokens of a working: of each digit and sign, and of " is 4" with the end token
LENGTHS = {
    sizes: sum(2 * size + 3 for size in sizes) + len(sizes) - 1 + 4
    for sizes in ((1, 1, 1), (2, 1), (3,))
}


class Arms:
    """The arms of the table, by seed.

    Args:
        folder: An empty folder for the beginner.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    @cached_property
    def model(self) -> str:
        """The folder of the beginner."""
        rng = random.Random(0)
        tasks = [with_budget(task, rng.randint(*SHOWN), SENTENCE) for task in sums(0, 4000)]
        numbers = [f"{number} " for number in range(10, 40)]
        return str(train_tiny_lm(self.folder, tasks, demonstrate, steps=800, tags=numbers))

    def recipe(self, budget: Positive, seed: int) -> Recipe:
        """GRPO on 0.6 correct + 0.3 length, with a budget in the prompts."""
        method = grpo(kl_coef=0.0).replace(
            curriculum=StatedBudget(ShuffledTasks(), budget, SENTENCE)
        )
        return Recipe(
            policy=CausalLM(self.model, max_new_tokens=48, tokens_per_microbatch=8192),
            env=ENV,
            tasks=InMemoryTasks(sums(4000, 5000)),
            eval_tasks=0,
            method=method,
            max_steps=1000,
            prompts_per_step=12,
            learning_rate=5e-4,
            early_stopping=EarlyStopping(max_tokens=MAX_TOKENS),
            seed=seed,
        )

    def trained(self, budget: Positive, seed: int) -> Metrics:
        """Accuracy and lengths after training with a budget."""
        learner = trained_for_tokens(self.recipe(budget, seed))
        return {**self.measured(learner.policy, seed), "steps": float(learner.state.step)}

    def beginner(self, seed: int) -> Metrics:
        """The policy that all arms start from."""
        return {**self.measured(self.recipe(END, seed).policy.build(), seed), "steps": 0.0}

    def measured(self, policy: HasActor, seed: int) -> Metrics:
        """Accuracy and length at the final budget, and length at a long one."""
        held_out = sums(5000, 5150)
        short, long = (
            mean_terms(
                policy, ENV, [with_budget(x, n, SENTENCE) for x in held_out], attempts=4, seed=seed
            )
            for n in (END, START)
        )
        return {
            "correct": short["correct"],
            "length": short["length"],
            "length_at_30": long["length"],
        }


def main(file: Path, seeds: Sequence[int]) -> None:
    """Run what is missing in the file and print the tables."""
    torch.set_num_threads(1)
    with tempfile.TemporaryDirectory() as name:
        arms = Arms(Path(name))
        runs = published_runs(
            file,
            {
                "beginner": arms.beginner,
                "final budget": lambda seed: arms.trained(END, seed),
                "exponential decay": lambda seed: arms.trained(GeometricSteps(START, END), seed),
            },
            seeds,
        )
    if len(seeds) > 1:
        print(paired_table(runs, METRICS, "final budget"))
        tested = {name: runs[name] for name in ("final budget", "exponential decay")}
        print(sequential_table(tested, "correct", "final budget", DESIGN))


if __name__ == "__main__":
    bounds = [int(text) for text in sys.argv[2:4]] or [0, 16]
    main(Path(sys.argv[1]), range(*bounds))
