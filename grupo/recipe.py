"""A recipe: what a run chooses, as data."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, Protocol

from grupo.algo.minibatches import OnePass, Passes
from grupo.algo.optimizer import Adam
from grupo.config.overrides import changed
from grupo.core.component import piece
from grupo.core.interfaces import Env, Turn, one_action
from grupo.core.schedules import Schedule
from grupo.core.types import Task
from grupo.method import Method
from grupo.models.aux_models import Other
from grupo.models.spec import Spec
from grupo.rollouts.evaluate import Solved


class Source(Protocol):
    """Where tasks come from."""

    def load(self) -> Sequence[Task]: ...


@piece
class Evaluation:
    """`attempts` sampled rollouts for each held-out task; every so many steps, 0: at both ends.

    How turns are taken is `turn`'s to say, as in training: budgets, chunks, or just to the end.
    """

    attempts: int = 8
    every: int = 0
    solved: Solved = Solved()
    turn: Turn = one_action


@piece
class Until:
    """Stop early once the share of held-out tasks solved by sampling reaches `sampled`.

    Or with the step by which so many `tokens` were sampled, or so many `seconds` spent on training;
    0: however many.
    """

    sampled: float = 2.0
    tokens: int = 0
    seconds: float = 0.0

    def spent(self, tokens: int, seconds: float) -> float:
        """The share of tokens or of seconds that is used up, the larger one."""
        limits = ((tokens, self.tokens), (seconds, self.seconds))
        return max((used / most for used, most in limits if most), default=0.0)


@piece
class Recipe:
    """A run: a policy, a world, tasks, a method, and numbers.

    `prompts` tasks a step, each sampled as often as the method says; `lr` may be a schedule;
    `max_norm` clips the gradient's norm. Old log-probabilities are the sampler's unless these were
    more than `tolerance` nats off, on average, at the step before; then they are measured again.
    Rollouts are sampled up to `staleness` steps ahead, while updates run, and corrected for it. Of
    each step the actions of `inspected` groups are written down. A checkpoint every `save_every`
    steps. Methods read the signals of `others` by name; what is learned beside the policy steps by
    `helper_lr`.
    """

    policy: Spec
    env: Env
    tasks: Source
    held_out: int | Source = 200
    method: Method = Method()
    steps: int = 100
    prompts: int = 16
    lr: float | Schedule = 1e-5
    optimizer: Adam = Adam()
    others: tuple[Other, ...] = ()
    helper_lr: float | Schedule = 1e-3
    helper_optimizer: Adam = Adam()
    max_norm: float = 1.0
    tolerance: float = 1e-3
    staleness: int = 0
    evaluation: Evaluation = Evaluation()
    until: Until = Until()
    inspected: int = 32
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

    def progress(self, step: int, tokens: int, seconds: float) -> float:
        """How far a run is, 0 to 1, by whatever ends it first: in the middle of the step begun."""
        return max((step + 0.5) / self.steps, self.until.spent(tokens, seconds))

    @property
    def group(self) -> int:
        """Rollouts in a group; 0 where the sampler does not say beforehand."""
        return getattr(self.method.sample, "n", 0)

    @property
    def updates(self) -> int:
        """Updates a step; 0 where the plan does not say beforehand."""
        match self.method.plan:
            case OnePass():
                return 1
            case Passes(epochs, minibatches):
                return epochs * min(minibatches, self.prompts)
        return 0

    def geometry(self) -> str:
        """What a step does, in words."""
        group, each = self.group, _count(self.updates, "update")
        rollouts = f"{self.prompts} prompts x {group} rollouts = {self.prompts * group} rollouts"
        sampled = rollouts if group else f"{self.prompts} prompts, each by {self.method.sample!r},"
        total = f"{_count(self.steps, 'step')} = {_count(self.steps * self.updates, 'update')}"
        if not self.updates:
            return (
                f"{sampled} a step; updates by {self.method.plan!r}; {_count(self.steps, 'step')}"
            )
        return f"{sampled} a step; {each} a step; {total}"


def _count(number: int, what: str) -> str:
    return f"{number} {what}{'s' * (number != 1)}"
