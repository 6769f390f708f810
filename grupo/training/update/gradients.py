"""From a batch to gradients: micro-batches, and two backward passes if the loss couples rows."""

from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from typing import Protocol

import torch
from torch import Tensor

from grupo.core.batch import Batch, SignalDict, Signals
from grupo.core.interfaces import SignalModel
from grupo.core.signal_names import CURRENT, GROUP_SIGNALS, is_comparison, split_name
from grupo.distributed.assignment import balance_rows
from grupo.distributed.base import SINGLE_RANK, Ranks
from grupo.distributed.exchange import collective_passes, exchange_json, out_of_memory_on_all
from grupo.distributed.phase import Phase
from grupo.method import Method
from grupo.training.update.policy_device import PassResult, WeightedBatch, read_results
from grupo.training.update.update_metrics import TokenHook, UpdateMetrics
from grupo.util.device_copies import to_device


def no_hook(batch: Batch, signals: Mapping[str, Tensor]) -> None:
    """Ignores the signals."""


class MicrobatchSignalModel(SignalModel, Protocol):
    """A model that knows which rows of a batch fit in memory together."""

    @property
    def is_sharded(self) -> bool:
        """Whether ranks divide its weights, so that they need equal numbers of backward passes."""
        ...

    def microbatches(self, batch: Batch) -> Iterator[Tensor]:
        """Row indices of micro-batches; every row occurs once."""
        ...


@torch.no_grad()
def add_signals(
    policy: MicrobatchSignalModel,
    models: Mapping[str, SignalModel],
    batch: Batch,
    names: Collection[str],
    ranks: Ranks = SINGLE_RANK,
) -> Batch:
    """The batch with further measured signals.

    Args:
        policy: Computes its own signals, and comparisons with other models such as `jsd@ref`.
        models: Auxiliary models by name: `logp@ref` is the signal `logp` of `models["ref"]`, and
            `logp@current` that of `policy` as it is now.
        batch: The batch; signals that it already has are not computed again.
        names: Names of the signals.
        ranks: The processes that share the rows; every rank returns the signals of all.
    """
    for name in sorted(set(names) - set(batch.signals)):
        signal, model = split_name(name)
        signal_model = policy
        model_signal = name
        if model and not is_comparison(name):
            signal_model = policy if model == CURRENT else models[model]
            model_signal = signal
        by_group = model_signal in GROUP_SIGNALS
        if by_group:
            own = list(_groups_of_rows(batch))[ranks.rank :: ranks.size]
            values = _evaluate_rows(signal_model, batch, [model_signal], own, ranks)
        else:
            values = evaluate_all(policy, signal_model, batch, [model_signal], ranks)
        batch = batch.with_signals({name: values[model_signal]})
    return batch


def _groups_of_rows(batch: Batch) -> Iterator[Tensor]:
    """The rows of each group, for signals that depend on all of them, whatever their number."""
    for group in batch.row_group.unique():
        yield (batch.row_group == group).nonzero()[:, 0]


@torch.no_grad()
def evaluate_all(
    policy: MicrobatchSignalModel,
    signal_model: SignalModel,
    batch: Batch,
    names: Collection[str],
    ranks: Ranks = SINGLE_RANK,
) -> SignalDict:
    """Signals of every row without gradients, in the micro-batches of `policy`."""
    own = _own_microbatches(policy, batch, ranks)
    return _evaluate_rows(signal_model, batch, names, own, ranks)


def _own_microbatches(policy: MicrobatchSignalModel, batch: Batch, ranks: Ranks) -> list[Tensor]:
    """Row indices of the micro-batches that this rank evaluates."""
    return _microbatches_by_rank(policy, batch, ranks)[ranks.rank]


def _microbatches_by_rank(
    policy: MicrobatchSignalModel, batch: Batch, ranks: Ranks
) -> list[list[Tensor]]:
    """Row indices of the micro-batches that each rank evaluates.

    Each rank divides the rows that it generated, because the division depends on which activations
    its caches hold. Then all ranks balance the same micro-batches.
    """
    if ranks.size == 1:
        return [list(policy.microbatches(batch))]
    rows = (_ranks_of_rows(batch, ranks) == ranks.rank).nonzero()[:, 0]
    own = [rows[part].tolist() for part in policy.microbatches(batch.select_rows(rows))]
    by_rank = exchange_json(ranks, own, Phase.MICROBATCHES_CHOSEN)
    microbatches = [[torch.tensor(part, dtype=torch.int64) for part in parts] for parts in by_rank]
    return balance_rows(microbatches, batch.mask.sum(1))


def _backward_passes(
    policy: MicrobatchSignalModel, batch: Batch, ranks: Ranks
) -> list[tuple[Tensor, float]]:
    """Row indices of this rank's micro-batches, each with the factor 1 of its loss.

    All ranks of a sharded policy gather weights in each pass: a rank with fewer micro-batches than
    another evaluates the shortest row of the batch, with the factor 0.
    """
    by_rank = _microbatches_by_rank(policy, batch, ranks)
    passes = [(rows, 1.0) for rows in by_rank[ranks.rank]]
    if policy.is_sharded:
        missing = max(map(len, by_rank)) - len(passes)
        shortest = batch.mask.sum(1).argmin()[None] if missing else torch.tensor([])
        passes += [(shortest, 0.0)] * missing
    return passes


def _ranks_of_rows(batch: Batch, ranks: Ranks) -> Tensor:
    """The rank that generated each row; any, if that is not known."""
    if isinstance(batch.inputs, Mapping) and "rank" in batch.inputs:
        return batch.inputs["rank"]
    return torch.arange(len(batch.mask)) % ranks.size


def _evaluate_rows(
    signal_model: SignalModel,
    batch: Batch,
    names: Collection[str],
    own: Sequence[Tensor],
    ranks: Ranks,
) -> SignalDict:
    """Signals of the rows of this rank, added to those of the others, which are 0 here."""
    out = {name: torch.zeros_like(batch.old_logp) for name in names}
    with out_of_memory_on_all(ranks):
        for rows in own:
            signals = signal_model.signals(batch.select_rows(rows), names)
            for name in names:
                device = signals[name].device
                out[name] = to_device(out[name], device)  # read when all rows are queued
                out[name][to_device(rows, device)] = signals[name].to(out[name])
        out = {name: values.to(batch.old_logp.device) for name, values in out.items()}
    ranks.sum(list(out.values()), Phase.SIGNALS_EVALUATED)
    return SignalDict(out)


def accumulate_gradients(
    policy: MicrobatchSignalModel,
    method: Method,
    batch: Batch,
    token_hook: TokenHook = no_hook,
    *,
    measure_all_rows: bool = False,
    ranks: Ranks = SINGLE_RANK,
) -> dict[str, float]:
    """Add the gradient of sum(weight x loss) to the policy's parameters; returns metrics.

    The sum is over the whole minibatch, so that the gradient does not depend on micro-batches. If
    the loss couples rows, it is differentiated with respect to the signals first, then the signals
    with respect to the parameters: exact, at the cost of one more forward pass. With several ranks
    the gradients of the parameters are those of the rank's own rows: their sum is the gradient.

    Args:
        policy: The policy; gradients are accumulated in its parameters.
        method: Its aggregation and loss are used.
        batch: The minibatch, with advantages.
        token_hook: Receives, for each micro-batch, signals and metrics of the loss per action.
        measure_all_rows: Evaluate rows without gradient, too, so that they count in the metrics: a
            controller that reads a metric needs it of all rows.
        ranks: The processes that share the rows; the metrics are those of all rows.
    """
    weight = method.aggregation(batch)
    # sorted: the order of signals decides the order in which autograd adds their gradients
    names = sorted({"logp", "entropy", *method.requires.recomputed_signals})
    metrics = UpdateMetrics(token_hook)
    if method.requires.coupled_rows:
        _two_passes(policy, method, batch, weight, names, metrics, ranks)
    else:
        rows = _rows_with_gradient(method, batch, weight, measure_all_rows)
        _one_pass(policy, method, batch.select_rows(rows), weight[rows], names, metrics, ranks)
    return metrics.means()


def _one_pass(
    policy: MicrobatchSignalModel,
    method: Method,
    batch: Batch,
    weight: Tensor,
    names: Collection[str],
    metrics: UpdateMetrics,
    ranks: Ranks,
) -> None:
    passes = _backward_passes(policy, batch, ranks)
    weighted = WeightedBatch(batch, weight)
    results = list[PassResult]()
    with _failures_of_ranks(policy, ranks):
        for rows, factor in passes:
            microbatch = batch.select_rows(rows)
            pi = policy.signals(microbatch, names)
            if pi.logp.requires_grad:
                pi.logp.retain_grad()  # for the metric update/advantage_alignment
            part, part_weight = weighted.select_rows(rows, microbatch, pi.logp.device)
            loss = (factor * part_weight * method.loss(pi, part)).sum()
            loss.backward()
            if factor:
                results.append(PassResult.of(rows, pi, loss))
        for rows, pi, loss in read_results(results):
            metrics.add(method, pi, batch.select_rows(rows), loss)
    metrics.add_other_ranks(ranks)


def _two_passes(
    policy: MicrobatchSignalModel,
    method: Method,
    batch: Batch,
    weight: Tensor,
    names: Collection[str],
    metrics: UpdateMetrics,
    ranks: Ranks,
) -> None:
    signals = evaluate_all(policy, policy, batch, names, ranks)
    pi = Signals({name: signal.requires_grad_() for name, signal in signals.items()})
    loss = (weight * method.loss(pi, batch)).sum()
    loss.backward()
    metrics.add(method, pi, batch, loss)
    gradients = {name: signal.grad for name, signal in pi.items() if signal.grad is not None}
    has_gradient = [(gradient != 0).any(1) for gradient in gradients.values()]
    trained = torch.stack(has_gradient).any(0).nonzero()[:, 0]
    passes = _backward_passes(policy, batch.select_rows(trained), ranks)
    with _failures_of_ranks(policy, ranks):
        for indices, factor in passes:
            rows = trained[indices]
            live = policy.signals(batch.select_rows(rows), names)
            torch.autograd.backward(
                [live[name] for name in gradients],
                [
                    to_device(factor * gradient[rows], live[name].device)
                    for name, gradient in gradients.items()
                ],
            )


def _failures_of_ranks(policy: MicrobatchSignalModel, ranks: Ranks) -> AbstractContextManager[None]:
    """Context manager of backward passes, in which another rank may fail."""
    return collective_passes(ranks) if policy.is_sharded else out_of_memory_on_all(ranks)


def _rows_with_gradient(
    method: Method, batch: Batch, weight: Tensor, measure_all_rows: bool
) -> Tensor:
    """Indices of the rows that can have a gradient, or of all weighted rows."""
    counted = batch.mask & (weight != 0)
    if method.loss.zero_if_no_advantage and not measure_all_rows:
        counted &= batch.advantage != 0
    return counted.any(1).nonzero()[:, 0]
