"""Samplers around another."""

from grupo.core.component import piece
from grupo.rollouts.samplers.independent import Independent


@piece
class Around:
    """Does something beside the inner sampler's group; only that group's rollouts are counted."""

    inner: Independent

    @property
    def n(self) -> int:
        """How many rollouts the inner sampler makes."""
        return self.inner.n
