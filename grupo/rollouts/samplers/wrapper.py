"""Samplers around another."""

from grupo.core.component import component
from grupo.rollouts.samplers.independent import GroupSampler


@component
class SamplerWrapper:
    """Does something beside the inner sampler's group; only that group's rollouts are counted."""

    inner: GroupSampler

    @property
    def group_size(self) -> int:
        """How many rollouts the inner sampler makes."""
        return self.inner.group_size
