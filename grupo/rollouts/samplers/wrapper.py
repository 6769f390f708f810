"""Base class of samplers that wrap another sampler."""

from grupo.core.component import component
from grupo.rollouts.samplers.independent import GroupSampler


@component
class SamplerWrapper:
    """Adds rollouts or reward terms to the inner sampler's group.

    Args:
        inner: The sampler whose group is extended; `group_size` counts its rollouts only.
    """

    inner: GroupSampler

    @property
    def group_size(self) -> int:
        """Rollouts of the inner sampler."""
        return self.inner.group_size
