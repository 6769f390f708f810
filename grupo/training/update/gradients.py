"""From a batch to the gradients of the policy's parameters, one micro-batch after the other.

Each micro-batch has one backward pass. If the loss of a row depends on other rows, the loss of the
whole minibatch is first differentiated with respect to the signals. The micro-batches then
propagate this gradient to the parameters.
"""

from collections.abc import Collection, Mapping
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
from grupo.training.update.signals import MicrobatchSignalModel, evaluate_all, microbatches_by_rank
from grupo.training.update.update_metrics import TokenHook, UpdateMetrics
from grupo.util.device_copies import to_device


def no_hook(batch: Batch, signals: Mapping[str, Tensor]) -> None:
    """Ignores the signals."""


def _microbatches_with_factors(
    policy: MicrobatchSignalModel, batch: Batch, ranks: Ranks
) -> list[tuple[Tensor, float]]:
    """Return the row indices of each micro-batch of this rank, with a factor of its loss.

    The factor is 1, except for the additional micro-batches of a sharded policy. The ranks of a
    sharded policy gather weights for each micro-batch and therefore need equal numbers of them. A
    rank with fewer micro-batches evaluates the shortest row of the batch with the factor 0.
    """
    by_rank = microbatches_by_rank(policy, batch, ranks)
    microbatches = [(rows, 1.0) for rows in by_rank[ranks.rank]]
    if policy.is_sharded:
        num_missing = max(map(len, by_rank)) - len(microbatches)
        shortest = batch.mask.sum(1).argmin()[None] if num_missing else torch.tensor([])
        microbatches += [(shortest, 0.0)] * num_missing
    return microbatches


def accumulate_gradients(
    policy: MicrobatchSignalModel,
    method: Method,
    batch: Batch,
    token_hook: TokenHook = no_hook,
    *,
    measure_all_rows: bool = False,
    ranks: Ranks = SINGLE_RANK,
) -> dict[str, float]:
    """Add the gradient of a minibatch's loss to the policy's parameters, and return metrics.

    The loss of the minibatch is the sum of weight x loss over all actions, with the weight that the
    method's aggregation gives to each action. The sum is over the whole minibatch. The gradient
    therefore does not depend on the micro-batches.

    If the loss couples rows, autograd first differentiates the loss with respect to the signals,
    and then the signals with respect to the parameters. The result is exact and needs one more
    forward pass.

    With several ranks, each rank adds the gradient of its own rows. The gradient of the minibatch
    is the sum over the ranks, which the caller computes.

    Args:
        policy: The policy; gradients are accumulated in its parameters.
        method: The method, of which the aggregation and the loss are used.
        batch: The minibatch, with advantages.
        token_hook: Is called for each micro-batch with the batch and its values per action: the
            entropy, the log-ratio and the metrics of the loss.
        measure_all_rows: Whether rows without gradient are evaluated, too. A controller that reads
            a metric needs the mean over all rows.
        ranks: The processes that share the rows; the metrics are those of all rows.
    """
    weight = method.aggregation(batch)
    # sorted: the order of signals decides the order in which autograd adds their gradients
    names = sorted({"logp", "entropy", *method.requires.recomputed_signals})
    metrics = UpdateMetrics(token_hook)
    if method.requires.coupled_rows:
        _accumulate_through_signals(policy, method, batch, weight, names, metrics, ranks)
    else:
        rows = _rows_to_evaluate(method, batch, weight, measure_all_rows)
        batch, weight = batch.select_rows(rows), weight[rows]
        _accumulate_directly(policy, method, batch, weight, names, metrics, ranks)
    return metrics.means()


def _accumulate_directly(
    policy: MicrobatchSignalModel,
    method: Method,
    batch: Batch,
    weight: Tensor,
    names: Collection[str],
    metrics: UpdateMetrics,
    ranks: Ranks,
) -> None:
    """Differentiate the loss of each micro-batch with respect to the parameters."""
    microbatches = _microbatches_with_factors(policy, batch, ranks)
    weighted_batch = WeightedBatch(batch, weight)
    results = list[MicrobatchResult]()
    with _handle_out_of_memory(policy, ranks):
        for rows, factor in microbatches:
            microbatch = batch.select_rows(rows)
            policy_signals = policy.signals(microbatch, names)
            logp = policy_signals.logp
            if logp.requires_grad:
                logp.retain_grad()  # for the metric update/advantage_alignment
            device_microbatch, device_weight = weighted_batch.select_rows(
                rows, microbatch, logp.device
            )
            loss_per_action = method.loss(policy_signals, device_microbatch)
            loss = (factor * device_weight * loss_per_action).sum()
            loss.backward()
            if factor:
                results.append(MicrobatchResult.of(rows, policy_signals, loss))
        for rows, policy_signals, loss in copy_results_to_cpu(results):
            metrics.add(method, policy_signals, batch.select_rows(rows), loss)
    metrics.add_other_ranks(ranks)


def _accumulate_through_signals(
    policy: MicrobatchSignalModel,
    method: Method,
    batch: Batch,
    weight: Tensor,
    names: Collection[str],
    metrics: UpdateMetrics,
    ranks: Ranks,
) -> None:
    """Differentiate the loss of the minibatch with respect to the signals, then the signals."""
    signals = evaluate_all(policy, policy, batch, names, ranks)
    policy_signals = Signals({name: signal.requires_grad_() for name, signal in signals.items()})
    loss = (weight * method.loss(policy_signals, batch)).sum()
    loss.backward()
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
            signals_with_grad = policy.signals(batch.select_rows(rows), names)
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

    With a sharded policy, the rank raises `ShardedOutOfMemoryError`. Otherwise all ranks raise a
    `MemoryError`.
    """
    if policy.is_sharded:
        return report_sharded_out_of_memory(ranks)
    return raise_out_of_memory_on_all_ranks(ranks)


def _rows_to_evaluate(
    method: Method, batch: Batch, weight: Tensor, measure_all_rows: bool
) -> Tensor:
    """Return the indices of the rows with an action whose weight is not 0.

    Rows in which every advantage is 0 are left out if the loss is 0 for them
    (`zero_if_no_advantage`), unless `measure_all_rows` is set.
    """
    is_evaluated = batch.mask & (weight != 0)
    if method.loss.zero_if_no_advantage and not measure_all_rows:
        is_evaluated &= batch.advantage != 0
    return is_evaluated.any(1).nonzero()[:, 0]
