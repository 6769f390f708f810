"""Rollouts of one context each as rows of tokens."""

from collections.abc import Mapping, Sequence

import torch
from torch import Tensor

from grupo.policies.contexts import context
from grupo.rollout import Rollout


def encode(rollouts: Sequence[Rollout]) -> Mapping[str, Tensor]:
    """The tokens of every row (N, L), right-padded; where its first action is; its length."""
    rows = [context(rollout) for rollout in rollouts]
    width = max(map(len, rows), default=0)
    token = torch.tensor([[*row, *[0] * (width - len(row))] for row in rows])
    return {"token": token, **extents(rollouts)}


def extents(rollouts: Sequence[Rollout]) -> Mapping[str, Tensor]:
    """Where the first action of each row is, `start` (N,), and its `length` (N,)."""
    starts = [len(r.turns[0][1].seen) if r.turns else 0 for r in rollouts]
    lengths = [len(context(r)) for r in rollouts]
    return {"start": torch.tensor(starts), "length": torch.tensor(lengths)}
