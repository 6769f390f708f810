"""How the reference policy, whose log-probabilities are the signal `logp@ref`, is updated."""

from grupo.core.component import component
from grupo.core.ranges import Probability
from grupo.core.units import RolloutSteps, RolloutStepsOrNever


@component
class ReferenceUpdate:
    """Moves the reference policy towards the trained one every `every` rollout steps.

    Args:
        rate: Fraction of the way to the trained policy. 0 keeps the initial policy, 1 copies the
            trained one, values between make an exponential moving average.
        every: Rollout steps between updates of the reference, however many optimizer updates
            each of them makes.
        until: Rollout steps after which the reference stays as it is; 0 sets no limit.
            `ReferenceUpdate(1.0, every=50, until=50)` copies the policy once.
    """

    rate: Probability = 0.0
    every: RolloutSteps = 1
    until: RolloutStepsOrNever = 0

    def is_due(self, step: int) -> bool:
        """Whether the reference moves after this many rollout steps.

        >>> [step for step in range(1, 7) if ReferenceUpdate(1.0, every=2, until=4).is_due(step)]
        [2, 4]
        """
        return step % self.every == 0 and (not self.until or step <= self.until)
