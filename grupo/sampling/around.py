"""Samplers around another."""

from grupo.piece import piece
from grupo.sampling.independent import Independent


@piece
class Around:
    """Does something beside the inner sampler's group; only that group's rollouts are counted."""

    inner: Independent

    @property
    def n(self) -> int:
        """How many rollouts the inner sampler makes."""
        return self.inner.n
