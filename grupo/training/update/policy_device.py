"""Copies of a minibatch to the policy's device, and of its results to the CPU.

A GPU has no work while the program waits for a result. The results of the micro-batches are
therefore copied together, after all micro-batches have been queued.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace

import torch
from torch import Tensor

from grupo.core.batch import Batch, Signals
from grupo.util.device_copies import to_device


@dataclass
class WeightedBatch:
    """A batch with the weights of its actions, which are copied to each device only once.

    Args:
        batch: The batch, on the CPU.
        weight: Weight of each action, (N, T) for N rows of T actions.
        copies: By device: the batch, without the policy's inputs, and the weights.
    """

    batch: Batch
    weight: Tensor
    copies: dict[torch.device, tuple[Batch, Tensor]] = field(default_factory=dict)

    def rows_on_device(
        self, rows: Tensor, microbatch: Batch, device: torch.device
    ) -> tuple[Batch, Tensor]:
        """Return rows of the batch and their weights on a device.

        Args:
            rows: Indices of the rows, on the CPU.
            microbatch: The same rows of the batch, on the CPU.
            device: The device.
        """
        if device == self.weight.device:
            return microbatch, self.weight[rows]
        if device not in self.copies:
            batch = replace(self.batch, inputs=None).to(device)
            self.copies[device] = batch, to_device(self.weight, device)
        batch, weight = self.copies[device]
        index = to_device(rows, device)
        return batch.select_rows(index), weight[index]


@dataclass(frozen=True)
class MicrobatchResult:
    """The result of the backward pass of a micro-batch, without the graph of autograd.

    Args:
        rows: Row indices of the micro-batch.
        policy_signals: The signals of the policy by name, one row for each of `rows`.
        loss: The loss of the micro-batch, a scalar.
        logp_gradient: Gradient of the loss with respect to the log-probabilities; None if the loss
            does not read them.
    """

    rows: Tensor
    policy_signals: Mapping[str, Tensor]
    loss: Tensor
    logp_gradient: Tensor | None

    @classmethod
    def of(cls, rows: Tensor, policy_signals: Signals, loss: Tensor) -> "MicrobatchResult":
        """The result of a micro-batch whose backward pass has ended."""
        detached = {name: signal.detach() for name, signal in policy_signals.items()}
        return cls(rows, detached, loss.detach(), policy_signals.logp.grad)


def copy_results_to_cpu(
    results: list[MicrobatchResult],
) -> Iterator[tuple[Tensor, Signals, Tensor]]:
    """Copy the results of all micro-batches to the CPU together.

    Yields for each micro-batch its row indices, the policy's signals and the loss. `logp.grad` of
    the signals is the gradient with respect to the log-probabilities, or None.
    """
    if not results:
        return
    sizes = [len(result.rows) for result in results]
    losses = torch.stack([result.loss for result in results]).cpu()
    signals_by_name = {
        name: torch.cat([result.policy_signals[name] for result in results]).cpu().split(sizes)
        for name in results[0].policy_signals
    }
    with_gradient = [result for result in results if result.logp_gradient is not None]
    gradients = iter(_copy_gradients_to_cpu(with_gradient))
    for i, result in enumerate(results):
        policy_signals = Signals({name: parts[i] for name, parts in signals_by_name.items()})
        policy_signals.logp.grad = None if result.logp_gradient is None else next(gradients)
        yield result.rows, policy_signals, losses[i]


def _copy_gradients_to_cpu(results: list[MicrobatchResult]) -> list[Tensor]:
    gradients = [result.logp_gradient for result in results if result.logp_gradient is not None]
    if not gradients:
        return []
    return list(torch.cat(gradients).cpu().split([len(gradient) for gradient in gradients]))
