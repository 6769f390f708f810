"""The losses of all methods on a simulated CUDA device, where an update computes them."""

from typing import Any

import pytest
import torch
from torch import Tensor
from torch.utils._python_dispatch import TorchDispatchMode

from grupo.algo import ratios
from grupo.catalogue.entries import methods
from grupo.core.batch import Batch, Signals
from grupo.method import Method
from grupo.testing.property_helpers import batch_for, resolved_at_midpoint, table_policy

DEVICE = torch.device("cuda")
METHODS = {entry.key: entry.method for entry in methods()}
# operations that add floats on CUDA in an order that is another one each time
UNORDERED = {"aten::index_add", "aten::scatter_add"}


class UnorderedSums(TorchDispatchMode):
    """Records the operations on the device that add floats in no order."""

    def __init__(self) -> None:
        super().__init__()
        self.names: list[str] = []

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        result = func(*args, **(kwargs or {}))
        name = func._schema.name.rstrip("_")
        if name in UNORDERED and result.is_cuda and result.is_floating_point():
            self.names.append(name)
        return result


def gradients(method: Method, batch: Batch, device: torch.device) -> tuple[Tensor, list[Tensor]]:
    """The loss of each action and its gradients in the signals, computed on a device."""
    signals = table_policy().signals(batch, method.requires.all_signals)
    pi = Signals({name: x.detach().to(device).requires_grad_() for name, x in signals.items()})
    loss = method.loss(pi, batch.to(device))
    loss.sum().backward()
    return loss.detach().cpu(), [x.grad.cpu() for x in pi.values() if x.grad is not None]


@pytest.mark.parametrize("key", METHODS)
def test_a_loss_on_a_device_is_that_of_the_cpu_and_adds_in_order(key: str):
    method = resolved_at_midpoint(METHODS[key])
    batch = batch_for(method).with_advantage(method.advantage)
    loss, grads = gradients(method, batch, torch.device("cpu"))
    with UnorderedSums() as sums:
        device_loss, device_grads = gradients(method, batch, DEVICE)
    torch.testing.assert_close(device_loss, loss)
    torch.testing.assert_close(device_grads, grads)
    # losses that couple rows are computed on the CPU
    assert method.requires.coupled_rows or not sums.names


def test_sums_without_order_are_found():
    x, index = torch.ones(3, device=DEVICE), torch.zeros(3, dtype=torch.long, device=DEVICE)
    with UnorderedSums() as sums:
        x.index_add(0, index, x)
        x.gather(0, index)
        x.new_zeros(2).index_put((index,), x, accumulate=True)
    assert sums.names == ["aten::index_add"]


def test_ratios_of_turns_are_added_in_order_on_a_device():
    method = resolved_at_midpoint(METHODS["grpo"])
    batch = batch_for(method)
    assert int(batch.turn.max()) > 0
    pi = table_policy().signals(batch, ["logp"])
    expected = ratios.turn(pi, batch)
    with UnorderedSums() as sums:
        on_device = Signals({"logp": pi.logp.detach().to(DEVICE).requires_grad_()})
        ratio = ratios.turn(on_device, batch.to(DEVICE))
        ratio.sum().backward()
    torch.testing.assert_close(ratio.cpu(), expected)
    assert not sums.names
