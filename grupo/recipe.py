"""A recipe: what a run chooses, as data."""

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace
from typing import Any, Protocol

import torch

from grupo.batch import Batch
from grupo.credit import Credit
from grupo.errors import Refused, Unmeasured
from grupo.evaluate import Solved
from grupo.method import Method
from grupo.piece import piece
from grupo.policies.causal_lm import CausalLM
from grupo.rollout import Env, Task
from grupo.schedules import Schedule
from grupo.spelling import changed, to_data


class Source(Protocol):
    """Where tasks come from."""

    def load(self) -> Sequence[Task]: ...


@piece
class Adam:
    """AdamW. Loshchilov and Hutter, 2017, arXiv:1711.05101."""

    beta1: float = 0.9
    beta2: float = 0.99
    eps: float = 1e-8
    decay: float = 0.0

    def __call__(self, parameters: Sequence[torch.nn.Parameter]) -> torch.optim.Optimizer:
        return torch.optim.AdamW(
            parameters, betas=(self.beta1, self.beta2), eps=self.eps, weight_decay=self.decay
        )


@piece
class Evaluation:
    """`attempts` sampled rollouts for each held-out task; every so many steps, 0: at both ends."""

    attempts: int = 8
    every: int = 0
    solved: Solved = Solved()


@piece
class Until:
    """Stop early once the share of held-out tasks solved by sampling reaches `sampled`."""

    sampled: float = 2.0


@piece
class Recipe:
    """A run: a policy, a world, tasks, a method, and numbers.

    `prompts` tasks a step, each sampled as often as the method says; `lr` may be a schedule;
    `max_norm` clips the gradient's norm; `rescore` evaluates old log-probabilities again with the
    training forward instead of taking the sampler's; a checkpoint every `save_every` steps.
    """

    policy: CausalLM
    env: Env
    tasks: Source
    held_out: int | Source = 200
    method: Method = Method()
    steps: int = 100
    prompts: int = 16
    lr: float | Schedule = 1e-5
    optimizer: Adam = Adam()
    max_norm: float = 1.0
    rescore: bool = False
    evaluation: Evaluation = Evaluation()
    until: Until = Until()
    save_every: int = 10
    seed: int = 0

    def but(self, **changes: Any) -> "Recipe":
        """The same recipe with some choices changed."""
        return replace(self, **changes)

    def overridden(self, changes: Sequence[tuple[str, str]]) -> "Recipe":
        """The same recipe with fields, dotted where they lie deeper, set from a command line."""
        recipe = self
        for field, text in changes:
            recipe = changed(recipe, field, text)
        return recipe

    def checked(self) -> "Recipe":
        """The same recipe, or one clear message about the first number that cannot be."""
        counts = {
            "steps": self.steps,
            "prompts": self.prompts,
            "save_every": self.save_every,
            "evaluation.attempts": self.evaluation.attempts,
        }
        for name, value in counts.items():
            if value < 1:
                raise Refused(f"{name}: {value} is too few. Allowed: 1 or more.")
        size = getattr(self.method.sample, "n", 0)
        if size == 1 and _says_nothing_alone(self.method.credit):
            raise Refused(
                "method.sample: a group of 1 has nobody to be compared with, so that its advantage"
                " is 0. Allowed: 2 or more with this credit."
            )
        to_data(self)
        return self

    def geometry(self) -> str:
        """What a step does, in words."""
        group = getattr(self.method.sample, "n", 0)
        plan = self.method.plan
        epochs, parts = getattr(plan, "epochs", 1), getattr(plan, "minibatches", 1)
        rollouts = f"{self.prompts} prompts x {group} rollouts = {self.prompts * group} rollouts"
        sampled = rollouts if group else f"{self.prompts} prompts, each by {self.method.sample!r}"
        return (
            f"{sampled} a step; {epochs} x {parts} = {epochs * parts} updates a step;"
            f" {self.steps} steps = {self.steps * epochs * parts} updates"
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
