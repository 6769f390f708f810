"""A rollout of two rows with the world's words between, beside one of a single action."""

from dataclasses import replace

import pytest
import torch

from grupo.testing.batches import make_batch


@pytest.fixture
def cut():
    """Rollout 0: turns 0, 1 in row 0, turn 2 in row 2; rollout 1: row 1. Column 1 is the world."""
    batch = make_batch(
        group=[0, 0, 0],
        length=[4, 2, 2],
        turn=[[0, 0, 1, 1], [0, 0, 0, 0], [2, 2, 0, 0]],
    )
    mask = batch.mask & (torch.arange(4) != 1)
    mask[2, 1] = True
    rollout, first = torch.tensor([0, 1, 0]), batch.reward[:2]
    return replace(batch, rollout=rollout, reward=first, group=batch.group[:2], mask=mask)
