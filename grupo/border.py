"""The border: what a recipe asks for is looked at once, before any work starts."""

from collections.abc import Collection, Sequence
from contextlib import suppress

import torch

from grupo.batch import Batch
from grupo.credit import Credit
from grupo.errors import Refused, Unmeasured, nearest
from grupo.policies.causal_lm import CausalPolicy
from grupo.recipe import Recipe
from grupo.rollout import Rollout, Task
from grupo.spelling import to_data

LOOKED_AT = 2000  # tasks whose length is checked beforehand; those of most sets, all


def check(recipe: Recipe) -> None:
    """Refuse numbers that cannot be, with one clear message about the first."""
    counts = {
        "steps": recipe.steps,
        "prompts": recipe.prompts,
        "save_every": recipe.save_every,
        "evaluation.attempts": recipe.evaluation.attempts,
    }
    for name, value in counts.items():
        if value < 1:
            raise Refused(f"{name}: {value} is too few. Allowed: 1 or more.")
    if recipe.group == 1 and _says_nothing_alone(recipe.method.credit):
        raise Refused(
            "method.sample: a group of 1 has nobody to be compared with, so that its advantage"
            " is 0. Allowed: 2 or more with this credit."
        )
    to_data(recipe)  # a run folder must be able to hold it


def check_names(needs: Collection[str], known: Collection[str]) -> None:
    """Refuse a method that reads signals of somebody whom the run does not know."""
    for need in sorted(needs):
        who = need.partition("@")[2]
        if who and who not in known:
            raise Refused(f"method: it reads {need!r}. {nearest(who, known)}")


def check_lengths(policy: CausalPolicy, *tasks: Sequence[Task]) -> None:
    """Refuse prompts that leave no room for an answer."""
    room = policy.context - policy.spec.limit
    for task in (some[i] for some in tasks for i in range(min(len(some), LOOKED_AT))):
        length = len(policy.read(Rollout(), task.prompt))
        if length > room:
            raise Refused(
                f"prompt: task {task.key} has {length} tokens; the model reads {policy.context},"
                f" {policy.spec.limit} of them kept for the answer. Allowed: {max(room, 0)}."
            )


def _says_nothing_alone(credit: Credit) -> bool:
    """Does a lone rollout get no advantage, whatever its reward?"""
    one = torch.ones(1, 1)
    alone = Batch.of(
        torch.ones(1, dtype=torch.float64),
        torch.zeros(1, dtype=torch.long),
        rollout=torch.zeros(1, dtype=torch.long),
        mask=one.bool(),
        old_logp=-one,
    )
    with suppress(Unmeasured):
        return bool((credit(alone.reward, alone) == 0).all())
    return False
