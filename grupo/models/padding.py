"""Rollouts as padded rows of tokens."""

from collections.abc import Mapping, Sequence

import numpy as np
import torch
from torch import Tensor

from grupo.core.types import Rollout
from grupo.models.context import context_tokens


def encode(rollouts: Sequence[Rollout]) -> Mapping[str, Tensor]:
    """Rollouts of one context each as `token` (N, L), right-padded with 0, and their `extents`."""
    rows = [context_tokens(rollout) for rollout in rollouts]
    lengths = [len(row) for row in rows]
    token = np.zeros((len(rows), max(lengths, default=0)), dtype=np.int64)
    for padded, row in zip(token, rows, strict=True):
        padded[: len(row)] = row
    return {"token": torch.from_numpy(token), **extents(rollouts, lengths)}


def extents(rollouts: Sequence[Rollout], lengths: Sequence[int]) -> Mapping[str, Tensor]:
    """Column of each row's first action, `start` (N,), and the row's `length` (N,)."""
    starts = [len(r.turns[0][1].observation) if r.turns else 0 for r in rollouts]
    return {"start": torch.tensor(starts), "length": torch.tensor(lengths)}
