"""Computes the gradients of the policy's parameters, one micro-batch after the other.

Each micro-batch has one backward pass. If the loss of a row depends on other rows, the loss of the
whole minibatch is first differentiated with respect to the signals. The micro-batches then
propagate this gradient to the parameters. A minibatch has N rows of T actions.
"""

from collections.abc import Mapping
from contextlib import AbstractContextManager

import torch
from torch import Tensor

from grupo.core.batch import Batch, Signals
from grupo.distributed.base import SINGLE_RANK, Ranks
from grupo.distributed.exchange import (
    raise_out_of_memory_on_all_ranks,
    report_sharded_out_of_memory,
)
from grupo.method import Method
from grupo.training.update.policy_device import (
    MicrobatchResult,
    WeightedBatch,
    copy_results_to_cpu,
)
from grupo.training.update.routers import RouterUpdate
from grupo.training.update.signals import (
    MicrobatchSignalModel,
    microbatches_by_rank,
    signals_of_all_rows,
)
from grupo.training.update.update_metrics import TokenHook, UpdateMetrics
from grupo.util.device_copies import to_device


def no_hook(batch: Batch, signals: Mapping[str, Tensor]) -> None:
    """Ignores the signals."""


def _microbatches_with_factors(
    policy: MicrobatchSignalModel, batch: Batch, ranks: Ranks
) -> list[tuple[Tensor, float]]:
    """Return the row indices of each micro-batch of this rank, and the factor of its loss.

    The ranks of a sharded policy gather its parameters in each micro-batch. All ranks therefore
    need the same number of micro-batches. A rank with fewer adds micro-batches of one row, with the
    factor 0. Every other factor is 1.
    """
    by_rank = microbatches_by_rank(policy, batch, ranks)
    microbatches = [(rows, 1.0) for rows in by_rank[ranks.rank]]
    if policy.is_sharded:
        num_missing = max(map(len, by_rank)) - len(microbatches)
        shortest_row = batch.mask.sum(1).argmin()[None] if num_missing else torch.tensor([])
        microbatches += [(shortest_row, 0.0)] * num_missing
    return microbatches


def accumulate_gradients(
    policy: MicrobatchSignalModel,
    method: Method,
    batch: Batch,
    token_hook: TokenHook = no_hook,
    *,
    include_rows_without_gradient: bool = False,
    ranks: Ranks = SINGLE_RANK,
) -> dict[str, float]:
    """Add the gradient of a minibatch's loss to the policy's parameters, and return metrics.

    The loss of the minibatch is the sum of weight x loss over all actions, with the weight that the
    method's aggregation gives to each action. The gradient therefore does not depend on how the
    minibatch is divided into micro-batches.

    If the loss couples rows, autograd first differentiates the loss with respect to the signals,
    and then the signals by the parameters. The result is exact and needs one more forward pass. A
    ratio of a whole sequence couples the rows of a forked rollout.

    With several ranks, each rank adds the gradient of its own rows. The gradient of the minibatch
    is the sum over the ranks, which the caller computes.

    Args:
        policy: The policy; gradients are accumulated in its parameters.
        method: Gives the aggregation and the loss.
        batch: The minibatch, with advantages.
        token_hook: Called for each micro-batch, with the micro-batch and its values per action: the
            entropy, the log-ratio and the metrics of the loss. If the loss couples rows, it is
            called once with the whole minibatch.
        include_rows_without_gradient: Whether rows without a gradient are evaluated, too. A
            controller that reads a metric needs the mean over all rows.
        ranks: The processes that share the rows. The metrics cover the evaluated rows of all ranks.
    """
    weight = method.aggregation(batch)
    metrics = UpdateMetrics(token_hook)
    routers = RouterUpdate(policy, ranks)
    requires = method.requires
    if requires.coupled_rows or (requires.coupled_sequences and batch.has_forks):
        _accumulate_through_signals(policy, method, batch, weight, metrics, routers, ranks)
    else:
        rows = _rows_to_evaluate(method, batch, weight, include_rows_without_gradient)
        batch, weight = batch.select_rows(rows), weight[rows]
        _accumulate_directly(policy, method, batch, weight, metrics, routers, ranks)
    return metrics.means() | routers.metrics()


def _signal_names(method: Method, routers: RouterUpdate) -> list[str]:
    """The signals that the loss reads, sorted: autograd adds their gradients in a fixed order."""
    names = {"logp", "entropy", *method.requires.recomputed_signals}
    return sorted(names | routers.signal_names)


def _accumulate_directly(
    policy: MicrobatchSignalModel,
    method: Method,
    batch: Batch,
    weight: Tensor,
    metrics: UpdateMetrics,
    routers: RouterUpdate,
    ranks: Ranks,
) -> None:
    """Differentiate the loss of each micro-batch with respect to the parameters."""
    signal_names = _signal_names(method, routers)
    batch = routers.prepare(batch)
    microbatches = _microbatches_with_factors(policy, batch, ranks)
    weighted_batch = WeightedBatch(batch, weight)
    results = list[MicrobatchResult]()
    with _handle_out_of_memory(policy, ranks):
        for rows, factor in microbatches:
            microbatch = batch.select_rows(rows)
            policy_signals = policy.signals(microbatch, signal_names)
            logp = policy_signals.logp
            if logp.requires_grad:
                logp.retain_grad()  # for the metric update/advantage_alignment
            device_microbatch, device_weight = weighted_batch.rows_on_device(
                rows, microbatch, logp.device
            )
            loss_per_action = method.loss(policy_signals, device_microbatch)
            loss = (factor * device_weight * loss_per_action).sum()
            (loss + factor * routers.loss(policy_signals)).backward()
            if factor:
                routers.add_last_rows()
                results.append(MicrobatchResult.of(rows, policy_signals, loss))
        for rows, policy_signals, loss in copy_results_to_cpu(results):
            metrics.add(method, policy_signals, batch.select_rows(rows), loss)
    metrics.add_other_ranks(ranks)


def _accumulate_through_signals(
    policy: MicrobatchSignalModel,
    method: Method,
    batch: Batch,
    weight: Tensor,
    metrics: UpdateMetrics,
    routers: RouterUpdate,
    ranks: Ranks,
) -> None:
    """Differentiate the loss with respect to the signals, and backpropagate to the parameters."""
    signal_names = _signal_names(method, routers)
    batch = routers.prepare(batch)
    # every rank gets the signals of all rows
    signals = signals_of_all_rows(policy, policy, batch, signal_names, ranks)
    policy_signals = Signals({name: signal.requires_grad_() for name, signal in signals.items()})
    loss = (weight * method.loss(policy_signals, batch)).sum()
    (loss + routers.loss(policy_signals)).backward()
    metrics.add(method, policy_signals, batch, loss)
    gradients = {
        name: signal.grad for name, signal in policy_signals.items() if signal.grad is not None
    }
    has_gradient = [(gradient != 0).any(1) for gradient in gradients.values()]
    trained_rows = torch.stack(has_gradient).any(0).nonzero()[:, 0]
    microbatches = _microbatches_with_factors(policy, batch.select_rows(trained_rows), ranks)
    with _handle_out_of_memory(policy, ranks):
        for indices, factor in microbatches:
            rows = trained_rows[indices]
            signals_with_grad = policy.signals(batch.select_rows(rows), signal_names)
            if factor:
                routers.add_last_rows()
            torch.autograd.backward(
                [signals_with_grad[name] for name in gradients],
                [
                    to_device(factor * gradient[rows], signals_with_grad[name].device)
                    for name, gradient in gradients.items()
                ],
            )


def _handle_out_of_memory(
    policy: MicrobatchSignalModel, ranks: Ranks
) -> AbstractContextManager[None]:
    """Return a context manager for passes in which a rank may run out of memory.

    If a rank of a sharded policy runs out of memory, this rank raises `ShardedOutOfMemoryError`. If
    a rank of another policy runs out of memory, all ranks raise `MemoryError`.
    """
    if policy.is_sharded:
        return report_sharded_out_of_memory(ranks)
    return raise_out_of_memory_on_all_ranks(ranks)


def _rows_to_evaluate(
    method: Method, batch: Batch, weight: Tensor, include_rows_without_gradient: bool
) -> Tensor:
    """Return the indices of the rows with an action whose weight is not 0.

    Rows in which every advantage is 0 are left out if the loss is 0 for them
    (`zero_if_no_advantage`), unless `include_rows_without_gradient` is set.
    """
    has_loss = batch.mask & (weight != 0)  # for each action
    if method.loss.zero_if_no_advantage and not include_rows_without_gradient:
        has_loss &= batch.advantage != 0
    return has_loss.any(1).nonzero()[:, 0]
