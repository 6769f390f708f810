"""Normalisation: the standard deviation that an advantage is divided by."""

from collections.abc import Callable

from torch import Tensor

from grupo.core import group_ops
from grupo.core.batch import Batch, broadcast_to_tokens
from grupo.core.component import component
from grupo.core.numbers import NumberOrSchedule
from grupo.core.requires import Requires


@component
class ScaleByStd:
    """x / (s + eps), with s the standard deviation within the rollout's group, (R,).

    After `Center()` this is the advantage of GRPO (arXiv:2402.03300).

    Args:
        eps: added to the standard deviation.
        std: function `(x, group) -> (R,)`; the unbiased deviation (n - 1) by default.

    >>> import torch
    >>> from grupo.testing.batches import make_batch
    >>> ScaleByStd(eps=0.0)(torch.tensor([0.5, -0.5, 0.5, -0.5]), make_batch(group=[0, 0, 0, 0]))
    tensor([ 0.8660, -0.8660,  0.8660, -0.8660])
    """

    eps: NumberOrSchedule = 1e-6
    std: Callable[[Tensor, Tensor], Tensor] = group_ops.std

    def __call__(self, x: Tensor, batch: Batch) -> Tensor:
        return x / (self.std(x, batch.group) + self.eps)


@component
class StandardiseBatch:
    """(x - mean) / (s + eps) over all rollouts of the batch that have actions, (R,).

    Groups are ignored, and every rollout counts once, whatever its length.

    Args:
        eps: added to the standard deviation.
        std: function `(x, label) -> (R,)`; the unbiased deviation (n - 1) by default.

    >>> import torch
    >>> from grupo.testing.batches import make_batch
    >>> x, batch = torch.tensor([1.0, 3.0]), make_batch(group=[0, 1], length=[1, 9])
    >>> StandardiseBatch(eps=0.0)(x, batch)
    tensor([-0.7071,  0.7071])
    >>> StandardiseBatch(std=group_ops.population_std)(x, batch)
    tensor([-1.,  1.])
    """

    eps: NumberOrSchedule = 1e-8
    std: Callable[[Tensor, Tensor], Tensor] = group_ops.std

    # mean and standard deviation are those of all groups
    requires = Requires(whole_batch=True)

    def __call__(self, x: Tensor, batch: Batch) -> Tensor:
        has_actions = (batch.lengths > 0).long()  # rollouts with actions form one group
        mean = group_ops.mean(x, has_actions)
        return (x - mean) / (self.std(x, has_actions) + self.eps)


@component
class Whiten:
    """(x - mean) / sqrt(var + eps) over all unmasked tokens of the batch, (N, T).

    The variance is unbiased (n - 1).

    Args:
        eps: added to the variance.

    >>> import torch
    >>> from grupo.testing.batches import make_batch
    >>> Whiten(eps=0.0)(torch.tensor([1.0, 3.0]), make_batch(group=[0, 0])).flatten()
    tensor([-0.7071,  0.7071])
    """

    eps: NumberOrSchedule = 1e-8

    # mean and variance are those of all groups
    requires = Requires(whole_batch=True)

    def __call__(self, x: Tensor, batch: Batch) -> Tensor:
        x = broadcast_to_tokens(x, batch)
        n = batch.mask.sum().clamp(min=1)
        centred = (x - x.sum() / n) * batch.mask
        return centred / ((centred**2).sum() / (n - 1).clamp(min=1) + self.eps).sqrt()
