"""Weights of a language model that are divided among ranks, by FSDP2 of torch."""

import copy
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

import torch
from torch import Tensor, nn
from transformers import PreTrainedModel

from grupo.core.component import component
from grupo.core.dtypes import DTYPES
from grupo.kernels.hidden_states import HiddenStates
from grupo.kernels.lm_head import LMHead
from grupo.models.evaluator import Evaluator
from grupo.models.row_routing import RowRouting
from grupo.util.errors import ConfigError
from grupo.util.sharded_tensors import whole

if TYPE_CHECKING:
    from torch.distributed.device_mesh import DeviceMesh


@component
class FSDP2:
    """Fully sharded data parallelism of torch. Zhao et al., 2023, arXiv:2304.11277.

    The trained weights, their gradients and the state of the optimizer are divided among the ranks;
    a rank gathers the weights of one layer at a time. It generates, and scores without gradients,
    with a whole copy of the weights. With a single rank nothing is divided.

    Args:
        reshard_after_forward: release the weights of a layer after its forward pass and gather them
            again for the backward pass; False needs memory for all layers.
        param_dtype: "bfloat16" gathers and copies the weights in half of the memory, and computes
            in bfloat16 throughout. Default: the stored type, float32 or float64.
        reduce_dtype: type in which gradients are added over ranks. Default: the stored type.
    """

    reshard_after_forward: bool = True
    param_dtype: Literal["bfloat16"] | None = None
    reduce_dtype: Literal["bfloat16"] | None = None


def check_sharding(sharding: FSDP2, dtype: str, quantization: object) -> None:
    """Raise `ConfigError` for options that a policy's weights cannot be divided with.

    Args:
        sharding: How the weights are divided.
        dtype: Compute type of the policy.
        quantization: Its quantization, or None.
    """
    from torch.distributed.fsdp import FSDPModule

    if "set_reduce_scatter_unused_params" not in vars(FSDPModule):
        raise ConfigError(f"sharding: FSDP2 needs torch 2.13 or newer, not {torch.__version__}.")
    if quantization:
        raise ConfigError(
            "sharding: FSDP2(…), and quantized weights cannot be divided among ranks. Allowed:"
            " without quantization."
        )
    if sharding.param_dtype and sharding.param_dtype != dtype:
        raise ConfigError(
            f"sharding.param_dtype: {sharding.param_dtype!r}, and the policy computes in {dtype}."
            f' Allowed: None, or dtype="{sharding.param_dtype}" beside it.'
        )


class ShardedModel:
    """A model whose weights are divided among ranks; its layers gather them when they run.

    Every rank must run the same number of forward and backward passes.

    Args:
        module: The whole model, on every rank with the same weights; it keeps them.
        hf_model: The model of transformers in `module`.
        evaluator: Evaluates the whole model.
        lm_head: Its head.
        mesh: The ranks.
        options: How the weights are divided.
        param_dtype: Type in which weights are gathered; None for the stored type.

    Raises:
        ConfigError: The model has no list of layers.
    """

    def __init__(
        self,
        module: nn.Module,
        hf_model: PreTrainedModel,
        evaluator: Evaluator,
        lm_head: LMHead,
        *,
        mesh: "DeviceMesh",
        options: FSDP2,
        param_dtype: torch.dtype | None,
    ) -> None:
        self.param_dtype = param_dtype
        self.module, self.hf_model = _copy_with_same_weights(module, hf_model)
        self.lm_head = lm_head.of_model(self.hf_model)
        root = _Root(self.module)
        _shard(root, _decoder_layers(self.hf_model), mesh, options, param_dtype)
        self.evaluator = GatheringEvaluator(root, evaluator.with_module_calls(self.hf_model))

    def trained(self) -> Iterator[tuple[str, nn.Parameter]]:
        """The trained parameters by name."""
        return ((n, p) for n, p in self.module.named_parameters() if p.requires_grad)

    @torch.no_grad()
    def copy_to(self, module: nn.Module) -> None:
        """Copy all trained weights into a whole model; every rank calls this."""
        own = dict(module.named_parameters())
        for name, parameter in self.trained():
            own[name].copy_(whole(parameter))


class _Root(nn.Module):
    """Runs a function in which modules of the model are called.

    FSDP gathers the weights outside of layers before the forward pass of one root module, and
    policies call the layers and the head apart.
    """

    def __init__(self, module: nn.Module) -> None:
        super().__init__()
        self.module = module

    def forward(self, run: Callable[[], Tensor]) -> Tensor:
        return run()


@dataclass(frozen=True)
class GatheringEvaluator:
    """Computes hidden states of a model whose weights are divided.

    The weights outside of layers, those of the head among them, then stay whole until the end of
    the backward pass.

    Args:
        root: Gathers these weights.
        evaluator: Evaluates the model.
    """

    root: nn.Module
    evaluator: Evaluator

    def hidden_states(
        self,
        token: Tensor,
        length: Tensor,
        row: Tensor,
        column: Tensor,
        routing: RowRouting | None = None,
    ) -> HiddenStates:
        """Hidden states at the positions (row, column), with a gradient."""

        def run() -> Tensor:
            return self.evaluator.hidden_states(token, length, row, column, routing).values

        return HiddenStates(self.root(run))


def _copy_with_same_weights(
    module: nn.Module, model: PreTrainedModel
) -> tuple[nn.Module, PreTrainedModel]:
    """Copies of a module and of the model in it, with parameters in the same memory."""
    memo: dict[int, Any] = {
        id(p): nn.Parameter(p.detach(), p.requires_grad) for p in module.parameters()
    }
    copied = copy.deepcopy(module, memo)
    return copied, memo[id(model)]


def _decoder_layers(model: PreTrainedModel) -> nn.ModuleList:
    """The layers of a model, of which each is gathered at once."""
    count = model.config.get_text_config().num_hidden_layers
    for part in model.base_model.modules():
        if isinstance(part, nn.ModuleList) and len(part) == count:
            return part
    raise ConfigError(
        f"sharding: FSDP2(…), and {type(model).__name__} has no list of {count} layers. Allowed"
        " with this model: None."
    )


def _shard(
    root: nn.Module,
    layers: nn.ModuleList,
    mesh: "DeviceMesh",
    options: FSDP2,
    param_dtype: torch.dtype | None,
) -> None:
    """Divide the layers, then the rest of the root; gradients are added, as losses are sums."""
    from torch.distributed.fsdp import FSDPModule, MixedPrecisionPolicy, fully_shard

    stored = next(p.dtype for p in root.parameters() if p.requires_grad)
    reduce_dtype = DTYPES[options.reduce_dtype] if options.reduce_dtype else stored
    precision = MixedPrecisionPolicy(param_dtype, reduce_dtype, cast_forward_inputs=False)
    reshard = options.reshard_after_forward
    for layer in layers:
        fully_shard(layer, mesh=mesh, mp_policy=precision, reshard_after_forward=reshard)
    fully_shard(root, mesh=mesh, mp_policy=precision, reshard_after_forward=False)
    for part in root.modules():
        if isinstance(part, FSDPModule):
            part.set_gradient_divide_factor(1.0)
            part.set_force_sum_reduction_for_comms(True)
            # a batch may not need all experts of a model on every rank
            part.set_reduce_scatter_unused_params(True)
