"""The state of an optimizer as tensors, for a checkpoint.

Tensors are named `<parameter>.<slot>`, `number.<parameter>.<slot>` for slots that are plain numbers
and `group.<group>.<name>` for numbers that the optimizer keeps for a group, such as a count of
updates. `weights.<parameter>` are the weights of an averaging optimizer at which it computes
gradients.
"""

from collections.abc import Iterator, Mapping
from typing import Any

import torch
from torch import Tensor
from torch.optim import Optimizer

from grupo.algo.optimizers.averaging import AveragingOptimizer, optimizer_parameters
from grupo.util.sharded_tensors import sharded_like

NUMBER = "number"
GROUP = "group"
WEIGHTS = "weights"
RECIPE_NUMBERS = ("lr", "weight_decay")  # set by the recipe, before an update or for a group


def optimizer_tensors(optimizer: Optimizer) -> dict[str, Tensor]:
    """The state of an optimizer; what it was constructed with is not part of it."""
    return dict(_named_tensors(optimizer))


def _named_tensors(optimizer: Optimizer) -> Iterator[tuple[str, Tensor]]:
    parameters = optimizer_parameters(optimizer)
    for index, parameter in enumerate(parameters):
        for slot, value in optimizer.state.get(parameter, {}).items():
            if isinstance(value, Tensor):
                yield f"{index}.{slot}", value
            else:
                yield f"{NUMBER}.{index}.{slot}", _number_tensor(value)
    for index, group in enumerate(optimizer.param_groups):
        for name, value in group.items():
            if _is_counter(optimizer, name, value):
                yield f"{GROUP}.{index}.{name}", _number_tensor(value)
    if isinstance(optimizer, AveragingOptimizer):
        for index, parameter in enumerate(parameters):
            yield f"{WEIGHTS}.{index}", parameter.detach()


def _is_counter(optimizer: Optimizer, name: str, value: Any) -> bool:
    """True for a number of a group that updates have changed."""
    is_number = isinstance(value, bool | int | float)
    return is_number and name not in RECIPE_NUMBERS and value != optimizer.defaults.get(name, value)


def _number_tensor(value: float) -> Tensor:
    """A bool, an int of 64 bits or a float of 64 bits as a tensor, exactly."""
    dtypes = {bool: torch.bool, int: torch.int64, float: torch.float64}
    return torch.tensor(value, dtype=dtypes[type(value)])


def restore_optimizer(optimizer: Optimizer, tensors: Mapping[str, Tensor]) -> None:
    """Load into an optimizer the state that `optimizer_tensors` returned."""
    state: dict[int, dict[str, Any]] = {}
    groups: list[dict[str, Any]] = optimizer.state_dict()["param_groups"]
    parameters = optimizer_parameters(optimizer)
    for name, tensor in tensors.items():
        match name.split("."):
            case [kind, index, slot] if kind == NUMBER:
                state.setdefault(int(index), {})[slot] = tensor.item()
            case [kind, index, slot] if kind == GROUP:
                groups[int(index)][slot] = tensor.item()
            case [kind, index] if kind == WEIGHTS:
                parameter = parameters[int(index)].data
                parameter.copy_(sharded_like(parameter, tensor))
            case [index, slot]:
                whole = sharded_like(parameters[int(index)], tensor)
                state.setdefault(int(index), {})[slot] = whole
    optimizer.load_state_dict({"param_groups": groups, "state": state})
