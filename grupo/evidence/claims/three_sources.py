"""Claims about tasks of which most teach nothing: sums of three sources, one of which does."""

from collections.abc import Sequence
from dataclasses import replace

from grupo.core.component import component
from grupo.core.types import Task
from grupo.evidence.claims.hard_sums import accuracy_by_terms, hard_sums_recipe
from grupo.method import Method
from grupo.methods.grpo import grpo
from grupo.recipe import Recipe
from grupo.rollouts.curricula import SourceBandit
from grupo.tasks.digit_sums import DigitSums
from grupo.training.learner import Learner

GROUP_SIZE, MAX_TOKENS = 8, 100_000
SOURCES = {"trivial": (180, 3, 3), "learnable": (40, 5, 6), "impossible": (180, 10, 10)}
GRPO = grpo(GROUP_SIZE, kl_coef=0.0)
LEARNABLE_ONLY = GRPO.replace(curriculum=SourceBandit(("learnable",)))  # the upper bound


@component
class ThreeSources:
    """Sums of digits, easy, learnable and too hard, with the name of their source."""

    def load(self) -> Sequence[Task]:
        return [
            replace(task, source=name)
            for name, (size, low, high) in SOURCES.items()
            for task in DigitSums(low, high, size, seed=1000).load()
        ]


def three_sources_recipe(method: Method, *, seed: int, max_tokens: int = MAX_TOKENS) -> Recipe:
    """Train the toy model of hard sums on tasks of the three sources.

    Args:
        method: The method.
        seed: Seed of the run.
        max_tokens: Tokens that are generated.
    """
    recipe = hard_sums_recipe(method, seed=seed, max_tokens=max_tokens)
    return recipe.replace(tasks=ThreeSources())


def accuracy_by_source(learner: Learner, seed: int) -> dict[str, float]:
    """Accuracy of 4 attempts at 100 held-out sums of each source.

    Args:
        learner: Its policy generates the attempts.
        seed: Seed of the attempts.
    """
    ranges = {name: (low, high) for name, (_, low, high) in SOURCES.items()}
    return accuracy_by_terms(learner, seed, ranges)
