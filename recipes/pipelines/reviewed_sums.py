"""Sums that a writer drafts, a reviewer criticises, and the writer revises: for `fellowship.py`.

One model has all roles. The draft of `2+3=` is right in half of the demonstrations, the review
`no` or `yes` of a draft in four fifths; after a review the answer is the draft again or another.
"""

import random
from collections.abc import Sequence
from pathlib import Path

from grupo.core.component import component
from grupo.core.types import Rollout, Task
from grupo.evidence.claims.tiny_lm import train_tiny_lm
from grupo.rewards import Statement
from grupo.rewards.noisy_preferences import Compare, pair_rng

REVIEW, REVISE = "{answer} ok ? ", "{answer} {review} : "
RIGHT_DRAFT, RIGHT_REVIEW, RIGHT_REVISION = 0.5, 0.8, 0.75
NUMBERS = range(5)
SUMS = {f"{a}+{b}=": str(a + b) for a in NUMBERS for b in NUMBERS}
ANSWERS = [str(number) for number in range(9)]


def sum_tasks() -> list[Task]:
    """All sums of two numbers below 5."""
    return [Task(prompt, prompt, answer) for prompt, answer in SUMS.items()]


def correct(task: Task, rollout: Rollout) -> float:
    """1 if the answer is the sum; else 0."""
    return float(rollout.text.strip() == str(task.reference_answer))


def closer(task: Task, first: Rollout, second: Rollout) -> float:
    """The true preference: the right answer over a wrong one; 1/2 for a tie."""
    return (1 + correct(task, first) - correct(task, second)) / 2


@component
class Persuadable:
    """A debater with a judge of its own, which may join the speaker before it.

    Args:
        judge: Its own preference function.
        conviction: Probability that it stays with its vote.
        seed: Selects other draws.
    """

    judge: Compare
    conviction: float = 0.5
    seed: int = 0

    def __call__(
        self, task: Task, first: Rollout, second: Rollout, statements: Sequence[Statement]
    ) -> Statement:
        own = self.judge(task, first, second)
        draw = pair_rng(self.seed, task, first, second).random()
        joins = bool(statements) and draw > self.conviction
        vote = statements[-1].vote if joins else own
        return Statement(vote, "first" if vote > 0.5 else "second")


def shown_tasks() -> list[Task]:
    """The prompts of all roles: sums, sums with an answer, and with its review."""
    found = []
    for prompt, right in SUMS.items():
        found.append(_shown("draft", prompt, right))
        for answer in ANSWERS:
            review = f"{prompt}{REVIEW.format(answer=answer)}"
            verdict = "yes" if answer == right else "no"
            found.append(_shown("review", review, verdict, answer=answer))
            for said in ("yes", "no"):
                revise = f"{prompt}{REVISE.format(answer=answer, review=said)}"
                found.append(_shown(said, revise, right, answer=answer))
    return found


def _shown(role: str, prompt: str, right: str, answer: str = "") -> Task:
    return Task(prompt, prompt, right, columns={"role": role, "given": answer})


def demonstrate(task: Task) -> list[str]:
    """Sixteen drafts, or four of another role."""
    rng = random.Random(f"demonstrations {task.prompt}")
    count = 16 if task.columns["role"] == "draft" else 4
    return [_demonstration(task, rng) for _ in range(count)]


def _demonstration(task: Task, rng: random.Random) -> str:
    role, right = task.columns["role"], str(task.reference_answer)
    if role == "draft":
        return right if rng.random() < RIGHT_DRAFT else rng.choice(ANSWERS)
    if role == "review":
        wrong = "no" if right == "yes" else "yes"
        return right if rng.random() < RIGHT_REVIEW else wrong
    if role == "yes":
        return task.columns["given"] if rng.random() < 0.9 else rng.choice(ANSWERS)
    return right if rng.random() < RIGHT_REVISION else rng.choice(ANSWERS)


def save_model(folder: Path, steps: int = 600) -> Path:
    """Train a model for all roles, and return its folder."""
    return train_tiny_lm(folder, shown_tasks(), demonstrate, steps=steps)
