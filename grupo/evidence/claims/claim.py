"""A claim as data: the sentence, the conditions, the two arms and the one comparison."""

from dataclasses import dataclass
from enum import StrEnum

from grupo.algo.minibatches import SingleUpdate, UpdatePlan
from grupo.catalogue.parse import parse_method
from grupo.core.ranges import NonNegativeFloat, NonNegativeInt, PositiveFloat, PositiveInt
from grupo.evidence.claims.environments import EnvBuilder
from grupo.evidence.claims.reference_arms import REFERENCE_ARMS
from grupo.method import Method


class Direction(StrEnum):
    """The sign of the difference that a claim predicts."""

    HIGHER = "higher"
    LOWER = "lower"


class ArmBudget(StrEnum):
    """The resource of which both arms of a claim get the same."""

    ROLLOUTS = "rollouts"
    STEPS = "steps"


@dataclass(frozen=True)
class Setting:
    """The conditions that both arms of a claim share.

    Args:
        name: Name of the setting on the page and in the results.
        description: The environment and what it has, in one sentence.
        env: The environment.
        metric: The metric on which the oracle and the negative control are compared.
        steps: Training steps of `rollouts_per_step` rollouts; their product is the budget.
        rollouts_per_step: Rollouts of a step; the number of tasks follows from the group size.
        learning_rate: Learning rate of Adam.
        updates: Update plan of both arms, in place of their own.
        engine_noise: Standard deviation of noise that is added to the sampler's logits at every
            step: rollouts then come from another distribution than the trainer's.
    """

    name: str
    description: str
    env: EnvBuilder
    metric: str = "success_auc"
    steps: PositiveInt = 80
    rollouts_per_step: PositiveInt = 128
    learning_rate: PositiveFloat = 0.1
    updates: UpdatePlan = SingleUpdate()
    engine_noise: NonNegativeFloat = 0.0


@dataclass(frozen=True)
class Arm:
    """A method under a setting, and what it may use.

    Args:
        method: A call of a method of the library, such as `grpo(kl_coef=0.0)`, or the name of one
            of `REFERENCE_ARMS`.
        budget: The resource of which both arms get the same.
        rollouts_per_step: Rollouts of a step; 0 takes the setting's number.
        repetition: Selects another random stream for the same tasks.
    """

    method: str
    budget: ArmBudget = ArmBudget.ROLLOUTS
    rollouts_per_step: NonNegativeInt = 0
    repetition: NonNegativeInt = 0

    def build(self) -> Method:
        """The method that the arm trains with."""
        return REFERENCE_ARMS.get(self.method) or parse_method(self.method)

    @property
    def label(self) -> str:
        """The method and what differs from the defaults, as in the results and on the page."""
        parts = {
            "equal steps": self.budget is ArmBudget.STEPS,
            f"{self.rollouts_per_step} rollouts a step": self.rollouts_per_step > 0,
            "repeated": self.repetition > 0,
        }
        return ", ".join([self.method, *(text for text, applies in parts.items() if applies)])


@dataclass(frozen=True)
class Claim:
    """The central claim of a method's paper and the one comparison that tests it.

    Args:
        key: Key of the method.
        sentence: The claim in one sentence.
        setting: Name of the setting.
        arm: The method.
        baseline: The method that it is compared with.
        metric: The metric, from `METRICS`.
        direction: The sign that the claim predicts for arm minus baseline.
        margin: For a claim of equality: the difference in the other direction that still counts as
            equal; 0 for a claim of an advantage.
    """

    key: str
    sentence: str
    setting: str
    arm: Arm
    baseline: Arm
    metric: str
    direction: Direction
    margin: NonNegativeFloat = 0.0
