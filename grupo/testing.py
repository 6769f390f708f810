"""Small batches to try pieces on, in doctests, tests and report cards."""

from collections.abc import Sequence

import torch

from grupo.batch import Batch, Named, Signals


def batch_of(
    group: Sequence[int],
    reward: Sequence[float] | None = None,
    *,
    length: Sequence[int] | None = None,
    advantage: Sequence[float] | None = None,
    logp: float = -1.0,
) -> Batch:
    """One row per rollout: rewards and advantages 0 and one action each unless told otherwise."""
    lengths = torch.tensor(length or [1] * len(group))
    mask = torch.arange(int(lengths.max()))[None] < lengths[:, None]
    batch = Batch.of(
        torch.tensor(reward or [0.0] * len(group), dtype=torch.float64),
        torch.tensor(group),
        rollout=torch.arange(len(group)),
        mask=mask,
        old_logp=torch.full(mask.shape, logp, dtype=torch.float64) * mask,
        seen=Named({"logp@ref": torch.full(mask.shape, logp, dtype=torch.float64) * mask}),
    )
    return batch.credited(lambda x, _: torch.tensor(advantage).to(x)) if advantage else batch


def moved(batch: Batch, by: Sequence[Sequence[float]]) -> Signals:
    """What a policy would say whose log-probabilities moved from the batch's by `by` (N, T)."""
    return Signals(logp=(batch.old_logp + torch.tensor(by).to(batch.old_logp)).requires_grad_())
