"""How the reference policy, whose log-probabilities are the signal `logp@ref`, is updated."""

from grupo.core.component import component
from grupo.core.ranges import Probability
from grupo.core.units import RolloutSteps


@component
class ReferenceUpdate:
    """Moves the reference policy towards the trained one every `every` rollout steps.

    Args:
        rate: Fraction of the way to the trained policy. 0 keeps the initial policy, 1 copies the
            trained one, values between make an exponential moving average.
        every: Rollout steps between updates of the reference, however many optimizer updates
            each of them makes.
    """

    rate: Probability = 0.0
    every: RolloutSteps = 1
