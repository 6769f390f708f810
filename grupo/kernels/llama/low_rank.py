"""Low-rank terms of projections: the adapters of peft's plain LoRA layers."""

from dataclasses import dataclass
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor, nn


@dataclass(frozen=True)
class LowRank:
    """The term `scale * (x @ a.T) @ b.T` that a LoRA layer adds to a product `x @ weight.T`.

    Args:
        layer: peft's layer, which may be disabled and enabled again.
        adapter: name of the adapter.
        a: the first matrix.
        b: the second matrix.
        scale: alpha / r, or alpha / sqrt(r) with rank-stabilized adapters.
    """

    layer: Any
    adapter: str
    a: Float[Tensor, "r n"]
    b: Float[Tensor, "m r"]
    scale: float

    @property
    def is_enabled(self) -> bool:
        """Whether the layer adds the term at present."""
        return not self.layer.disable_adapters

    @property
    def is_current(self) -> bool:
        """Whether the layer, if it is enabled, adds this term and no other."""
        layer = self.layer
        return (
            not layer.merged_adapters
            and layer.active_adapters == [self.adapter]
            and layer.scaling[self.adapter] == self.scale
            and _drops_nothing(layer.lora_dropout[self.adapter])
        )

    def merged_into(self, weight: Float[Tensor, "m n"]) -> Float[Tensor, "m n"]:
        """The weight of a layer without adapters that computes the same, in the type of `a`."""
        return torch.addmm(weight.to(self.a), self.b, self.a, alpha=self.scale)


def base_linear(module: Any) -> nn.Linear:
    """The linear layer below the adapter, if there is one, for which `is_plain_linear` holds."""
    return module if type(module) is nn.Linear else module.base_layer


def is_plain_linear(module: nn.Module) -> bool:
    """Whether the module is a linear layer, with at most one adapter of plain LoRA."""
    return type(module) is nn.Linear or _is_plain_lora(module)


def low_rank_of(module: nn.Module) -> LowRank | None:
    """The low-rank term of a layer for which `is_plain_linear` holds, if it has an adapter."""
    if type(module) is nn.Linear:
        return None
    layer: Any = module
    (adapter,) = layer.active_adapters
    a, b = layer.lora_A[adapter].weight, layer.lora_B[adapter].weight
    return LowRank(layer, adapter, a, b, layer.scaling[adapter])


def _is_plain_lora(module: nn.Module) -> bool:
    """Whether the module is peft's LoRA of a linear layer, unmerged and without any extension."""
    from peft.tuners.lora import Linear

    if type(module) is not Linear or type(module.base_layer) is not nn.Linear:
        return False
    if len(module.active_adapters) != 1 or module.merged_adapters or module.fan_in_fan_out:
        return False
    (adapter,) = module.active_adapters
    matrices = [x[adapter] for x in (module.lora_A, module.lora_B) if adapter in x]
    return (
        [(type(x), x.bias) for x in matrices] == [(nn.Linear, None)] * 2
        and adapter not in module.lora_variant
        and _drops_nothing(module.lora_dropout[adapter])
    )


def _drops_nothing(dropout: nn.Module) -> bool:
    is_off = isinstance(dropout, nn.Dropout) and not (dropout.training and dropout.p)
    return is_off or isinstance(dropout, nn.Identity)
