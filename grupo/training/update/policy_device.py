"""A minibatch on the policy's device, and the results of its backward passes, read with one wait.

A GPU has no work while the program waits for it: nothing is read before all passes are queued.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace

import torch
from torch import Tensor

from grupo.core.batch import Batch, Signals
from grupo.util.device_copies import to_device


@dataclass
class WeightedBatch:
    """A batch with the weights of its actions, copied once to the device of the signals.

    Args:
        batch: The batch, on the CPU.
        weight: Weight of each action, (N, T).
        copies: The batch without the policy's inputs and the weights, by their device.
    """

    batch: Batch
    weight: Tensor
    copies: dict[torch.device, tuple[Batch, Tensor]] = field(default_factory=dict)

    def select_rows(
        self, rows: Tensor, microbatch: Batch, device: torch.device
    ) -> tuple[Batch, Tensor]:
        """Some rows and their weights on a device.

        Args:
            rows: Their indices, on the CPU.
            microbatch: These rows on the CPU.
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
class PassResult:
    """The result of a backward pass, without its graph.

    Args:
        rows: Row indices of the micro-batch.
        pi: The policy's signals.
        loss: The weighted sum of the loss.
        logp_gradient: Gradient of the log-probabilities; None if the loss does not depend on them.
    """

    rows: Tensor
    pi: Mapping[str, Tensor]
    loss: Tensor
    logp_gradient: Tensor | None

    @classmethod
    def of(cls, rows: Tensor, pi: Signals, loss: Tensor) -> "PassResult":
        """The result of a pass through which gradients have flowed."""
        signals = {name: signal.detach() for name, signal in pi.items()}
        return cls(rows, signals, loss.detach(), pi.logp.grad)


def read_results(results: list[PassResult]) -> Iterator[tuple[Tensor, Signals, Tensor]]:
    """Rows, signals and loss of each pass on the CPU; `logp.grad` is its gradient, or None.

    The results of all passes are copied together.
    """
    if not results:
        return
    sizes = [len(result.rows) for result in results]
    losses = torch.stack([result.loss for result in results]).cpu()
    columns = {
        name: torch.cat([result.pi[name] for result in results]).cpu().split(sizes)
        for name in results[0].pi
    }
    with_gradient = [result for result in results if result.logp_gradient is not None]
    gradients = iter(_read_gradients(with_gradient))
    for i, result in enumerate(results):
        pi = Signals({name: column[i] for name, column in columns.items()})
        pi.logp.grad = None if result.logp_gradient is None else next(gradients)
        yield result.rows, pi, losses[i]


def _read_gradients(results: list[PassResult]) -> list[Tensor]:
    gradients = [result.logp_gradient for result in results if result.logp_gradient is not None]
    if not gradients:
        return []
    return list(torch.cat(gradients).cpu().split([len(gradient) for gradient in gradients]))
