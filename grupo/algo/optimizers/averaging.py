"""Optimizers that compute gradients at one set of weights and return an average of weights."""

from collections.abc import Generator
from contextlib import contextmanager
from typing import Protocol, runtime_checkable

import torch
from torch import nn
from torch.optim import Optimizer


@runtime_checkable
class AveragingOptimizer(Protocol):
    """An optimizer with two sets of weights, of which its parameters hold one at a time."""

    def train(self) -> None:
        """Put the weights at which gradients are computed into the parameters."""
        ...

    def eval(self) -> None:
        """Put the averaged weights into the parameters."""
        ...


@contextmanager
def use_averaged_weights(*optimizers: Optimizer) -> Generator[None]:
    """A context in which parameters hold averaged weights; afterwards they have their bits again.

    Parameters of optimizers that do not average never change.
    """
    averaging = [x for x in optimizers if isinstance(x, AveragingOptimizer)]
    parameters = [p for x in optimizers if x in averaging for p in optimizer_parameters(x)]
    trained = [p.detach().clone() for p in parameters]
    for optimizer in averaging:
        optimizer.eval()
    try:
        yield
    finally:
        for optimizer in averaging:
            optimizer.train()
        with torch.no_grad():  # `train` computes the weights again, with rounding errors
            for parameter, weights in zip(parameters, trained, strict=True):
                parameter.copy_(weights)


def optimizer_parameters(optimizer: Optimizer) -> list[nn.Parameter]:
    """All parameters of an optimizer, in the order of its groups."""
    return [parameter for group in optimizer.param_groups for parameter in group["params"]]
