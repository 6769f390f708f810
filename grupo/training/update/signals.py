"""Computes signals of all rows of a batch without gradients; the ranks share the micro-batches."""

from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Protocol

import torch
from torch import Tensor

from grupo.core.batch import Batch, SignalDict
from grupo.core.interfaces import SignalModel
from grupo.core.signal_names import CURRENT, GROUP_SIGNALS, is_comparison, split_name
from grupo.distributed.assignment import balance_rows
from grupo.distributed.base import SINGLE_RANK, Ranks
from grupo.distributed.exchange import exchange_json, raise_out_of_memory_on_all_ranks
from grupo.distributed.phase import Phase
from grupo.util.device_copies import to_device


class MicrobatchSignalModel(SignalModel, Protocol):
    """A model that knows which rows of a batch fit in memory together."""

    @property
    def is_sharded(self) -> bool:
        """Whether the ranks divide the model's weights.

        The ranks of a sharded model need equal numbers of micro-batches.
        """
        ...

    def microbatches(self, batch: Batch) -> Iterator[Tensor]:
        """The row indices of each micro-batch; every row is in one micro-batch."""
        ...


@torch.no_grad()
def add_signals(
    policy: MicrobatchSignalModel,
    models: Mapping[str, SignalModel],
    batch: Batch,
    names: Collection[str],
    ranks: Ranks = SINGLE_RANK,
) -> Batch:
    """Return the batch with the named signals, computed without gradients.

    Args:
        policy: Computes signals of the policy, and comparisons with other models such as `jsd@ref`.
        models: Auxiliary models by name. `logp@ref` is the signal `logp` of `models["ref"]`, and
            `logp@current` is the signal `logp` of `policy` at the start of the step.
        batch: The batch. Signals that it already has are not computed again.
        names: Names of the signals.
        ranks: The processes that share the rows; every rank returns the signals of all rows.
    """
    for name in sorted(set(names) - set(batch.signals)):
        base_name, model_name = split_name(name)
        signal_model = policy
        signal_name = name  # the signal's name for `signal_model`
        if model_name and not is_comparison(name):
            signal_model = policy if model_name == CURRENT else models[model_name]
            signal_name = base_name
        if signal_name in GROUP_SIGNALS:
            own_row_groups = list(_groups_of_rows(batch))[ranks.rank :: ranks.size]
            values = _evaluate_rows(signal_model, batch, [signal_name], own_row_groups, ranks)
        else:
            values = signals_of_all_rows(policy, signal_model, batch, [signal_name], ranks)
        batch = batch.with_signals({name: values[signal_name]})
    return batch


def _groups_of_rows(batch: Batch) -> Iterator[Tensor]:
    """Yield the row indices of each group, for signals that depend on all rows of a group.

    The rows of a group are evaluated together, even if they are too many for a micro-batch.
    """
    for group in batch.row_group.unique():
        yield (batch.row_group == group).nonzero()[:, 0]


@torch.no_grad()
def signals_of_all_rows(
    policy: MicrobatchSignalModel,
    signal_model: SignalModel,
    batch: Batch,
    names: Collection[str],
    ranks: Ranks = SINGLE_RANK,
) -> SignalDict:
    """Return signals of a model for every row of a batch, also for the rows of other ranks.

    Args:
        policy: Divides the rows into micro-batches.
        signal_model: Computes the signals: the policy itself or an auxiliary model.
        batch: The batch.
        names: Names of the signals, as `signal_model` calls them.
        ranks: The processes that share the micro-batches.
    """
    own_microbatches = microbatches_by_rank(policy, batch, ranks)[ranks.rank]
    return _evaluate_rows(signal_model, batch, names, own_microbatches, ranks)


def microbatches_by_rank(
    policy: MicrobatchSignalModel, batch: Batch, ranks: Ranks
) -> list[list[Tensor]]:
    """Return the row indices of the micro-batches that each rank evaluates.

    Each rank divides the rows that it generated into micro-batches. Their size depends on whether
    the rank cached the activations of these rows during generation. The ranks exchange their
    micro-batches, and every rank computes the same assignment of micro-batches to ranks.
    """
    if ranks.size == 1:
        return [list(policy.microbatches(batch))]
    own_rows = (_ranks_of_rows(batch, ranks) == ranks.rank).nonzero()[:, 0]
    own_batch = batch.select_rows(own_rows)
    own_microbatches = [own_rows[rows].tolist() for rows in policy.microbatches(own_batch)]
    rows_by_rank = exchange_json(ranks, own_microbatches, Phase.MICROBATCHES_CHOSEN)
    microbatches = [
        [torch.tensor(rows, dtype=torch.int64) for rows in of_rank] for of_rank in rows_by_rank
    ]
    return balance_rows(microbatches, batch.mask.sum(1))


def _ranks_of_rows(batch: Batch, ranks: Ranks) -> Tensor:
    """Return the rank that generated each row, or ranks in turn if this is not known."""
    if isinstance(batch.inputs, Mapping) and "rank" in batch.inputs:
        return batch.inputs["rank"]
    return torch.arange(len(batch.mask)) % ranks.size


def _evaluate_rows(
    signal_model: SignalModel,
    batch: Batch,
    names: Collection[str],
    own_microbatches: Sequence[Tensor],
    ranks: Ranks,
) -> SignalDict:
    """Return the signals of the rows of all ranks.

    This rank evaluates only its own micro-batches, and its values of other rows are 0. The sum over
    the ranks therefore has the values of all rows.
    """
    all_signals = {name: torch.zeros_like(batch.old_logp) for name in names}
    with raise_out_of_memory_on_all_ranks(ranks):
        for rows in own_microbatches:
            signals = signal_model.signals(batch.select_rows(rows), names)
            for name in names:
                device = signals[name].device
                # values stay on the device, so that no micro-batch waits for a copy to the CPU
                values = to_device(all_signals[name], device)
                values[to_device(rows, device)] = signals[name].to(values)
                all_signals[name] = values
        device = batch.old_logp.device
        all_signals = {name: values.to(device) for name, values in all_signals.items()}
    ranks.sum(list(all_signals.values()), Phase.SIGNALS_EVALUATED)
    return SignalDict(all_signals)
