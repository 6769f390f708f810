"""Baselines: what a reward is compared with."""

from collections.abc import Callable

from torch import Tensor

from grupo.core import group_ops
from grupo.core.batch import Batch
from grupo.core.component import component


@component
class Center:
    """x - b(group), with b the group's mean unless told otherwise.

    >>> import torch
    >>> from grupo.testing.batch_sizes import batch_of
    >>> Center()(torch.tensor([1.0, 0.0, 0.0, 0.0]), make_batch(group=[0, 0, 0, 0]))
    tensor([ 0.7500, -0.2500, -0.2500, -0.2500])
    """

    baseline: Callable[[Tensor, Tensor], Tensor] = group_ops.mean

    def __call__(self, x: Tensor, batch: Batch) -> Tensor:
        return x - self.baseline(x, batch.group)
