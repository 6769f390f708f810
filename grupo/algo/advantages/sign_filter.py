"""Training on one side: advantages are kept for high rewards only, or for low rewards only.

Source: hkust-nlp/model-task-align-rl, verl/trainer/ppo/core_algos.py (`psr`, `nsr`).
"""

import torch
from jaxtyping import Bool
from torch import Tensor

from grupo.core.batch import Batch
from grupo.core.component import component


@component
class PositiveSamples:
    """x where the reward is above `above`, else 0.

    Args:
        above: rewards of positive samples are larger.

    >>> from grupo.testing.batches import make_batch
    >>> batch = make_batch(group=[0, 0, 0, 0], reward=[1.0, 1.0, 1.0, 0.0])
    >>> PositiveSamples()(torch.tensor([0.5, 0.5, 0.5, -1.5]), batch)
    tensor([0.5000, 0.5000, 0.5000, 0.0000])
    """

    above: float = 0.0

    def __call__(self, x: Tensor, batch: Batch) -> Tensor:
        return _kept(x, batch.reward > self.above, batch)


@component
class NegativeSamples:
    """x where the reward is below `below`, else 0.

    Args:
        below: rewards of negative samples are smaller.

    >>> from grupo.testing.batches import make_batch
    >>> batch = make_batch(group=[0, 0, 0, 0], reward=[1.0, 1.0, 1.0, 0.0])
    >>> NegativeSamples()(torch.tensor([0.5, 0.5, 0.5, -1.5]), batch)
    tensor([ 0.0000,  0.0000,  0.0000, -1.5000])
    """

    below: float = 1.0

    def __call__(self, x: Tensor, batch: Batch) -> Tensor:
        return _kept(x, batch.reward < self.below, batch)


def _kept(x: Tensor, keep: Bool[Tensor, "R"], batch: Batch) -> Tensor:
    """x of the rollouts in `keep`, 0 for the others; x is per rollout or per token."""
    return torch.where(keep if x.ndim == 1 else keep[batch.rollout, None], x, 0.0)
