"""The batch on which numbers of other implementations were recorded.

Two groups of three ragged rollouts, and the change of log-probs from the old policy to pi. Tests
of methods compare with numbers that the authors' code computed on it.
"""

from dataclasses import replace

import torch

from grupo.core.batch import Batch
from grupo.testing.batches import make_batch, perturb_logp

OLD = [
    [-1.0, -0.5, -2.0],
    [-0.7, -1.2, 0.0],
    [-0.9, 0.0, 0.0],
    [-0.3, -1.6, 0.0],
    [-1.1, -0.8, -0.4],
    [-1.4, 0.0, 0.0],
]
MOVES = [
    [0.1, -0.3, 0.05],
    [0.25, -0.15, 0.0],
    [-0.35, 0.0, 0.0],
    [0.2, 0.4, 0.0],
    [-0.05, -0.45, 0.15],
    [0.3, 0.0, 0.0],
]
# the first and the fifth rollout are demonstrations
EXPERT = {"sampled": [[0.0] * 3, *[[1.0] * 3] * 3, [0.0] * 3, [1.0] * 3]}


def six(reward=None, **fields) -> Batch:
    """The batch of six rollouts, with further arguments of `make_batch`."""
    batch = make_batch([0, 0, 0, 1, 1, 1], reward, length=[3, 2, 1, 2, 3, 1], **fields)
    return replace(batch, old_logp=torch.tensor(OLD).double())


def learned(method, batch: Batch) -> tuple[float, list[float]]:
    """The loss for log-probs changed by `MOVES`, and its gradient at every action."""
    pi = perturb_logp(batch, MOVES)
    loss = (method.aggregation(batch) * method.loss(pi, batch)).sum()
    (gradient,) = torch.autograd.grad(loss, pi.logp)
    return loss.item(), gradient[batch.mask].tolist()


def flat(rows: list[list[float]]) -> list[float]:
    """The numbers of ragged rows in one list."""
    return [x for row in rows for x in row]
