"""Rollouts of one context each as rows of tokens."""

from collections.abc import Mapping, Sequence

import numpy as np
import torch
from torch import Tensor

from grupo.core.types import Rollout
from grupo.models.context import context_tokens


def encode(rollouts: Sequence[Rollout]) -> Mapping[str, Tensor]:
    """The tokens of every row (N, L), right-padded; where its first action is; its length."""
    rows = [context_tokens(rollout) for rollout in rollouts]
    lengths = [*map(len, rows)]
    token = np.zeros((len(rows), max(lengths, default=0)), dtype=np.int64)
    for place, row in zip(token, rows, strict=True):
        place[: len(row)] = row
    return {"token": torch.from_numpy(token), **extents(rollouts, lengths)}


def extents(rollouts: Sequence[Rollout], lengths: Sequence[int]) -> Mapping[str, Tensor]:
    """Where the first action of each row is, `start` (N,), and its `length` (N,)."""
    starts = [len(r.turns[0][1].observation) if r.turns else 0 for r in rollouts]
    return {"start": torch.tensor(starts), "length": torch.tensor(lengths)}
