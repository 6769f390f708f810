"""Scales: what an advantage is measured in."""

from collections.abc import Callable

from torch import Tensor

from grupo.core import group_ops
from grupo.core.batch import Batch, broadcast_to_tokens
from grupo.core.component import component


@component
class ScaleByStd:
    """x / (s(group) + eps), s the unbiased standard deviation of the group unless told otherwise.

    >>> import torch
    >>> from grupo.testing.batch_sizes import batch_of
    >>> ScaleByStd(eps=0.0)(torch.tensor([0.5, -0.5, 0.5, -0.5]), make_batch(group=[0, 0, 0, 0]))
    tensor([ 0.8660, -0.8660,  0.8660, -0.8660])
    """

    eps: float = 1e-6
    std: Callable[[Tensor, Tensor], Tensor] = group_ops.std

    def __call__(self, x: Tensor, batch: Batch) -> Tensor:
        return x / (self.std(x, batch.group) + self.eps)


@component
class StandardiseBatch:
    """(x - mean) / (s + eps) over the rollouts of the batch that acted, whatever their groups.

    Each counts once, however long. s is the unbiased standard deviation unless told otherwise.

    >>> import torch
    >>> from grupo.testing.batch_sizes import batch_of
    >>> x, batch = torch.tensor([1.0, 3.0]), make_batch(group=[0, 1], length=[1, 9])
    >>> StandardiseBatch(eps=0.0)(x, batch)
    tensor([-0.7071,  0.7071])
    >>> StandardiseBatch(std=group_ops.population_std)(x, batch)
    tensor([-1.,  1.])
    """

    eps: float = 1e-8
    std: Callable[[Tensor, Tensor], Tensor] = group_ops.std

    @property
    def needs_whole_batch(self) -> bool:
        """Yes: mean and deviation are everybody's."""
        return True

    def __call__(self, x: Tensor, batch: Batch) -> Tensor:
        acted = (batch.lengths > 0).long()  # as if those who acted were one group
        return (x - group_ops.mean(x, acted)) / (self.std(x, acted) + self.eps)


@component
class Whiten:
    """Mean 0 and unbiased standard deviation 1 over every action of the batch.

    >>> import torch
    >>> from grupo.testing.batch_sizes import batch_of
    >>> Whiten(eps=0.0)(torch.tensor([1.0, 3.0]), make_batch(group=[0, 0])).flatten()
    tensor([-0.7071,  0.7071])
    """

    eps: float = 1e-8

    @property
    def needs_whole_batch(self) -> bool:
        """Yes: what a rollout is credited with depends on the other groups."""
        return True

    def __call__(self, x: Tensor, batch: Batch) -> Tensor:
        x = broadcast_to_tokens(x, batch)
        n = batch.mask.sum()
        centred = (x - x.sum() / n) * batch.mask
        return centred / ((centred**2).sum() / (n - 1).clamp(min=1) + self.eps).sqrt()
