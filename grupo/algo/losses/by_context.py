"""Losses that differ by the context in which an action was generated."""

from collections.abc import Mapping

import torch
from torch import Tensor

from grupo.algo.data_source import REQUIRES_OFF_CONTEXT, off_context_mask
from grupo.algo.losses.base import Loss
from grupo.core.batch import Batch, PerAction, Signals
from grupo.core.component import component


@component
class SelectByContext(Loss):
    """One loss for actions generated from this prompt, another for those of other prompts, (N, T).

    Args:
        on_context_loss: loss of actions that were generated in the context they are trained in.
        off_context_loss: loss of actions that were generated in another context.

    >>> from grupo.algo.losses import NLL, Reinforce
    >>> from grupo.testing.batches import make_batch, perturb_logp
    >>> signals = {"off_context": [[0.0], [1.0]]}
    >>> batch = make_batch(group=[0, 0], advantage=[3.0, 0.0], signals=signals)
    >>> SelectByContext(Reinforce(), NLL())(perturb_logp(batch, [[0.0], [0.0]]), batch).tolist()
    [[3.0], [1.0]]
    """

    on_context_loss: Loss
    off_context_loss: Loss

    requires = REQUIRES_OFF_CONTEXT

    def __call__(self, pi: Signals, batch: Batch) -> PerAction:
        off_context = self.off_context_loss(pi, batch)
        return torch.where(off_context_mask(batch), off_context, self.on_context_loss(pi, batch))

    def metrics(self, pi: Signals, batch: Batch) -> Mapping[str, Tensor]:
        return {
            **self.on_context_loss.metrics(pi, batch),
            **self.off_context_loss.metrics(pi, batch),
        }
