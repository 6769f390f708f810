"""Several optimizers of different parameters as one."""

from collections.abc import Sequence
from typing import Any

from torch.optim import Optimizer


class CombinedOptimizer(Optimizer):
    """Optimizers of disjoint parameters, which are updated, saved and restored together.

    Args:
        optimizers: The optimizers; afterwards they share their groups and state with this one.
    """

    def __init__(self, optimizers: Sequence[Optimizer]) -> None:
        self.optimizers = optimizers
        groups = [group for optimizer in optimizers for group in optimizer.param_groups]
        super().__init__(groups, {})
        self._share_state()

    def step(self, closure: Any = None) -> None:  # pyrefly: ignore[bad-override]
        """Update all parameters; a closure is not supported."""
        assert closure is None, "the trainer computes gradients before an update"
        for optimizer in self.optimizers:
            optimizer.step()

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Load groups and state into all optimizers."""
        super().load_state_dict(state_dict)
        self._share_state()

    def _share_state(self) -> None:
        """Give each optimizer its own ones among the groups, and the state of all parameters."""
        groups = iter(self.param_groups)
        for optimizer in self.optimizers:
            optimizer.param_groups = [next(groups) for _ in optimizer.param_groups]
            optimizer.state = self.state
