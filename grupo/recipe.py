"""A recipe: what a run chooses, as data."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, Protocol

from grupo.algo.minibatches import SingleUpdate, Updates
from grupo.algo.optimizer import Adam
from grupo.config.overrides import set_field
from grupo.core.component import component
from grupo.core.interfaces import Env, TurnStrategy, single_action
from grupo.core.schedules import Schedule
from grupo.core.types import Task
from grupo.method import Method
from grupo.models.aux_models import AuxModel
from grupo.models.spec import PolicySpec
from grupo.rollouts.evaluate import SuccessCriterion


class TaskSource(Protocol):
    """Where tasks come from."""

    def load(self) -> Sequence[Task]: ...


@component
class Evaluation:
    """`attempts` sampled rollouts for each held-out task; every so many steps, 0: at both ends.

    How turns are taken is `turn`'s to say, as in training: budgets, chunks, or just to the end.
    """

    attempts: int = 8
    every: int = 0
    success: SuccessCriterion = SuccessCriterion()
    turn_strategy: TurnStrategy = single_action


@component
class EarlyStopping:
    """Stop early once the share of held-out tasks solved by sampling reaches `sampled`.

    Or with the step by which so many `tokens` were sampled, or so many `seconds` spent on training;
    0: however many.
    """

    min_solve_rate: float = 2.0
    max_tokens: int = 0
    max_seconds: float = 0.0

    def used_fraction(self, tokens: int, seconds: float) -> float:
        """The share of tokens or of seconds that is used up, the larger one."""
        limits = ((tokens, self.max_tokens), (seconds, self.max_seconds))
        return max((used / most for used, most in limits if most), default=0.0)


@component
class Recipe:
    """A run: a policy, a world, tasks, a method, and numbers.

    `prompts` tasks a step, each sampled as often as the method says; `lr` may be a schedule;
    `max_grad_norm` clips the gradient's norm. Old log-probabilities are the sampler's unless these were
    more than `old_logp_tolerance` nats off, on average, at the step before; then they are measured again.
    Rollouts are sampled up to `max_staleness` steps ahead, while updates run, and corrected for it. Of
    each step the actions of `logged_groups` groups are written down. A checkpoint every `save_every`
    steps. Methods read the signals of `others` by name; what is learned beside the policy steps by
    `aux_head_learning_rate`.
    """

    policy: PolicySpec
    env: Env
    tasks: TaskSource
    eval_tasks: int | TaskSource = 200
    method: Method = Method()
    max_steps: int = 100
    prompts_per_step: int = 16
    learning_rate: float | Schedule = 1e-5
    optimizer: Adam = Adam()
    aux_models: tuple[AuxModel, ...] = ()
    aux_head_learning_rate: float | Schedule = 1e-3
    aux_head_optimizer: Adam = Adam()
    max_grad_norm: float = 1.0
    old_logp_tolerance: float = 1e-3
    max_staleness: int = 0
    evaluation: Evaluation = Evaluation()
    early_stopping: EarlyStopping = EarlyStopping()
    logged_groups: int = 32
    save_every: int = 10
    seed: int = 0

    def replace(self, **changes: Any) -> "Recipe":
        """The same recipe with some choices changed."""
        return replace(self, **changes)

    def with_overrides(self, changes: Sequence[tuple[str, str]]) -> "Recipe":
        """The same recipe with fields, dotted where they lie deeper, set from a command line."""
        recipe = self
        for field, text in changes:
            recipe = set_field(recipe, field, text)
        return recipe

    def progress(self, step: int, tokens: int, seconds: float) -> float:
        """How far a run is, 0 to 1, by whatever ends it first: in the middle of the step begun."""
        return max(
            (step + 0.5) / self.max_steps, self.early_stopping.used_fraction(tokens, seconds)
        )

    @property
    def group_size(self) -> int:
        """Rollouts in a group; 0 where the sampler does not say beforehand."""
        return getattr(self.method.sampler, "n", 0)

    @property
    def updates_per_step(self) -> int:
        """Updates a step; 0 where the plan does not say beforehand."""
        match self.method.updates:
            case SingleUpdate():
                return 1
            case Updates(epochs, minibatches):
                return epochs * min(minibatches, self.prompts_per_step)
        return 0

    def describe_step(self) -> str:
        """What a step does, in words."""
        group, each = self.group_size, _count(self.updates_per_step, "update")
        rollouts = f"{self.prompts_per_step} prompts x {group} rollouts = {self.prompts_per_step * group} rollouts"
        sampled = (
            rollouts
            if group
            else f"{self.prompts_per_step} prompts, each by {self.method.sampler!r},"
        )
        total = f"{_count(self.max_steps, 'step')} = {_count(self.max_steps * self.updates_per_step, 'update')}"
        if not self.updates_per_step:
            return f"{sampled} a step; updates by {self.method.updates!r}; {_count(self.max_steps, 'step')}"
        return f"{sampled} a step; {each} a step; {total}"


def _count(number: int, what: str) -> str:
    return f"{number} {what}{'s' * (number != 1)}"
