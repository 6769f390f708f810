"""Rollouts as rows of tokens."""

from collections.abc import Mapping, Sequence

import torch
from torch import Tensor

from grupo.rollout import Rollout


def encode(rollouts: Sequence[Rollout]) -> Mapping[str, Tensor]:
    """The tokens of every row (N, L), right-padded; where its first action is; its length."""
    rows = [[x for _, a in r.turns for x in (*a.seen, *a.parts)] for r in rollouts]
    width = max(map(len, rows), default=0)
    return {
        "token": torch.tensor([row + [0] * (width - len(row)) for row in rows]),
        "start": torch.tensor([len(r.turns[0][1].seen) if r.turns else 0 for r in rollouts]),
        "length": torch.tensor([len(row) for row in rows]),
    }
