"""The expected gradient of a method, its bias and its variance: exact, from all possible steps."""

from dataclasses import dataclass
from math import atan2, degrees, nan

import torch

from grupo.core.schedules import resolve_schedules
from grupo.evidence.exact.enumeration import step_outcomes
from grupo.evidence.exact.environment import FiniteEnv, Logits
from grupo.evidence.exact.reach import group_size_of, obstacle
from grupo.evidence.exact.signals import PolicyTables
from grupo.evidence.exact.step_gradients import step_gradients
from grupo.method import Method
from grupo.util.errors import ConfigError

MIDPOINT = 0.5  # progress at which schedules are resolved
NO_GRADIENT = 1e-12  # a shorter expected gradient, relative to the true one, is 0


@dataclass(frozen=True)
class GradientMoments:
    """Mean and variance of a method's gradient, and the gradient of the expected reward.

    Both gradients are directions of ascent in the table of the policy.

    Args:
        expected: Expectation of minus the gradient of the loss.
        variance: Trace of the covariance of the gradient of the loss.
        true: Gradient of the expected reward, the mean over tasks.
    """

    expected: Logits
    variance: float
    true: Logits

    @property
    def angle(self) -> float:
        """Angle between the expected and the true gradient, in degrees; NaN if one is 0."""
        unit = self.true / self.true.norm()
        along = (self.expected * unit).sum()
        across = (self.expected - along * unit).norm()
        return degrees(atan2(across.item(), along.item())) if self.has_gradient else nan

    @property
    def length_ratio(self) -> float:
        """Length of the expected gradient over the length of the true gradient."""
        return (self.expected.norm() / self.true.norm()).item() if self.has_gradient else 0.0

    @property
    def relative_variance(self) -> float:
        """Variance over the squared length of the expected gradient; NaN if that is 0.

        It does not depend on constant factors of the loss.
        """
        squared_length = self.expected.square().sum().item()
        return self.variance / squared_length if self.has_gradient else nan

    @property
    def has_gradient(self) -> bool:
        """True if the expected gradient is not 0."""
        return self.expected.norm().item() > NO_GRADIENT * self.true.norm().item()


def expected_gradient(
    method: Method,
    env: FiniteEnv,
    *,
    current: Logits | None = None,
    reference: Logits | None = None,
) -> GradientMoments:
    """Expectation and variance of the gradient of a step of a method, in float64.

    A step has one group of each task. The environment's own policy samples the groups; filter,
    advantage estimator, aggregation and loss of the method run as they are. A step of which the
    filter keeps nothing has the gradient 0. The batch is not split into minibatches, and a dropped
    group is not replaced by another.

    Args:
        method: The method. Its sampler sets the group size; its schedules are resolved midway
            through a run.
        env: The environment.
        current: Table of the policy that is trained, such as `env.moved_logits(0.15)`; by default
            the policy that sampled, as in the first update of a step.
        reference: Table of the reference policy; by default the policy that sampled.

    Raises:
        ConfigError: The method reads what the environment has not, or there are too many groups.

    >>> from grupo.evidence.exact import FiniteTask
    >>> from grupo.methods.dr_grpo import dr_grpo
    >>> env = FiniteEnv((FiniteTask(rewards=(1.0, 0.0), probabilities=(0.25, 0.75)),))
    >>> moments = expected_gradient(dr_grpo(max_length=1, group_size=8), env)
    >>> round(moments.angle, 6), round(moments.length_ratio, 6)
    (0.0, 0.875)
    """
    if reason := obstacle(method):
        raise ConfigError(f"method: {reason}. A finite environment has rewards only.")
    method = resolve_schedules(method, MIDPOINT)
    current = env.logits if current is None else current
    tables = PolicyTables(current, env.logits, env.logits if reference is None else reference)
    outcomes = step_outcomes(env, group_size_of(method), method.filter)
    ascent = -step_gradients(method, env, [*outcomes], tables).flatten(1)
    probability = torch.tensor([*outcomes.values()], dtype=torch.float64)
    expected = probability @ ascent
    variance = probability @ (ascent - expected).square().sum(1)
    true = env.policy_gradient(current)
    return GradientMoments(expected.view_as(current), variance.item(), true)
