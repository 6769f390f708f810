"""References: the policy that the trained one is held against, answering `logp@ref`."""

from grupo.core.component import component


@component
class ReferenceUpdate:
    """A reference that moves a share `rate` of the way to the policy after every `every` steps.

    0: the policy as training found it, for ever; 1: a copy made every so many steps; between: an
    exponential moving average.
    """

    rate: float = 0.0
    every: int = 1
