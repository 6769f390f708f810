"""Batches of pairs with given log-ratios, and the loss and gradient of a method on them."""

from collections.abc import Mapping, Sequence

import torch

from grupo.core.batch import Batch, Signals
from grupo.method import Method
from grupo.testing.batches import make_batch


def pair_batch(
    log_ratio: Sequence[float],
    *,
    length: Sequence[int] = (1, 1),
    logp: float = -1.0,
    group: Sequence[int] = (0, 0),
    reward: Sequence[float] = (1.0, 0.0),
    reward_terms: Mapping[str, Sequence[float]] | None = None,
) -> Batch:
    """Answers of `length` tokens, each of log-probability `logp` under the policy.

    Args:
        log_ratio: log(pi / pi_ref) of each answer, spread evenly over its tokens.
    """
    width = max(length)
    ref = [[logp - h / n] * width for h, n in zip(log_ratio, length, strict=True)]
    return make_batch(
        group,
        reward,
        length=length,
        logp=logp,
        reward_terms=reward_terms,
        signals={"logp@ref": ref},
    )


def loss_and_gradient(
    method: Method, batch: Batch, change: Sequence[float] | None = None
) -> tuple[float, list[float]]:
    """The loss, and its gradient in the log-probability of each answer's first token.

    Args:
        change: log(pi / pi_old) of each answer's first token; 0 by default.
    """
    batch = batch.with_advantage(method.advantage)
    logp = batch.old_logp.clone()
    if change is not None:
        logp[:, 0] += torch.tensor(change, dtype=logp.dtype)
    logp.requires_grad_()
    loss = (method.aggregation(batch) * method.loss(Signals(logp=logp), batch)).sum()
    (gradient,) = torch.autograd.grad(loss, logp)
    assert not gradient[~batch.mask].any()
    return loss.item(), gradient[:, 0].tolist()
