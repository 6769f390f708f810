"""How the reference policy, whose log-probabilities are the signal `logp@ref`, is updated."""

from grupo.core.component import component
from grupo.core.ranges import PositiveInt, Probability


@component
class ReferenceUpdate:
    """Moves the reference policy towards the trained one every `every` steps.

    Args:
        rate: Fraction of the way to the trained policy. 0 keeps the initial policy, 1 copies the
            trained one, values between make an exponential moving average.
        every: Steps between updates of the reference.
    """

    rate: Probability = 0.0
    every: PositiveInt = 1
