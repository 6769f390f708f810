"""Forward pass with gradient over packed rows, from cached activations if they are current."""

from collections.abc import Sequence
from typing import Any, Protocol

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable

from grupo.kernels.llama.activation_cache import ActivationCache, ActivationLayout, ScratchBuffers
from grupo.kernels.llama.forward_backward import LayerOps, OutputIndex
from grupo.kernels.llama.model_weights import LlamaWeights
from grupo.kernels.llama.products import Products
from grupo.kernels.llama.weights_version import WeightsVersion
from grupo.kernels.packing.hf_attention import AttentionWithLSE
from grupo.kernels.packing.prefix_trie import PackedTokens
from grupo.kernels.packing.tree_attention import TreeAttention


class LayerStack(Protocol):
    """The layers of a model with the buffers that the forward and backward passes use."""

    weights: LlamaWeights
    activation_layout: ActivationLayout
    activation_cache: ActivationCache
    scratch: ScratchBuffers

    def layer_ops(self, like: Tensor, position: Tensor, products: Products) -> LayerOps: ...

    def forward(
        self,
        x: Tensor,
        position: Tensor,
        attention: AttentionWithLSE,
        activations: Sequence[Tensor],
        output_index: OutputIndex,
        products: Products,
    ) -> Tensor: ...


class CachedForward(torch.autograd.Function):
    """Last hidden states of the packed tokens in `output_index`.

    `activation_index` holds the row of every packed token in the activation cache; with None the
    activations are computed and kept until the backward pass.
    """

    @staticmethod
    def forward(
        ctx: Any,
        backend: LayerStack,
        packed: PackedTokens,
        weights_version: WeightsVersion,
        activation_index: Tensor | None,
        output_index: OutputIndex,
        x: Tensor,
        *weights: Tensor,
    ) -> Tensor:
        cache = backend.activation_cache
        products = backend.weights.products(weights_version)
        if activation_index is None:
            sizes = [backend.activation_layout.width] * len(backend.weights.layers) + [x.shape[1]]
            activations = tuple(x.new_empty(len(x), size) for size in sizes)
            layout = TreeAttention(packed)
            args = x, packed.position, layout, activations, output_index, products
            hidden = backend.forward(*args)
        else:
            activations = cache.buffers
            rows = activation_index if output_index is None else activation_index[output_index]
            ops = backend.layer_ops(x, packed.position, products)
            hidden = ops.norm(activations[-1][rows], backend.weights.final_norm_weight)
        ctx.save_for_backward(*weights)
        ctx.backend = backend
        ctx.packed = packed
        ctx.activations = activations
        ctx.activation_index = activation_index
        ctx.output_index = output_index
        ctx.weights_version = weights_version
        ctx.generation = cache.generation
        return hidden

    @staticmethod
    @once_differentiable
    # pyrefly: ignore[bad-override]
    def backward(ctx: Any, *grads: Tensor) -> tuple[Tensor | None, ...]:
        _check_valid(ctx)
        backend = ctx.backend
        packed = ctx.packed
        output_index = ctx.output_index
        tree = TreeAttention(packed)
        products = backend.weights.products(ctx.weights_version)
        ops = backend.layer_ops(ctx.activations[-1], packed.position, products)
        last = len(backend.weights.layers) - 1
        output = _activations(ctx, last + 1)
        output = output if output_index is None else output[output_index]
        grad = grads[0].contiguous()
        grad, norm_grad = ops.norm_backward(
            output, backend.weights.final_norm_weight, grad, torch.zeros_like(grad)
        )
        weight_grads: list[Tensor | None] = [norm_grad]
        for i in reversed(range(len(backend.weights.layers))):
            layer = backend.weights.layers[i]
            index = output_index if i == last else None
            grad, layer_grads = ops.backward(layer, _activations(ctx, i), grad, tree, index)
            weight_grads[:0] = [layer_grads.get(name) for name in layer.parameters]
        return None, None, None, None, None, grad, *weight_grads


def _check_valid(ctx: Any) -> None:
    """Raises RuntimeError if weights or cached activations have changed since the forward."""
    _ = ctx.saved_tensors  # torch raises an error for the writes that it counts
    if ctx.backend.weights.version(ctx.weights_version.dtype) != ctx.weights_version:
        raise RuntimeError("weights that a gradient needs have been written, e.g. by an optimizer")
    cached = ctx.activation_index is not None
    if cached and ctx.backend.activation_cache.generation != ctx.generation:
        raise RuntimeError("activations that a gradient needs are gone: another engine was started")


def _activations(ctx: Any, i: int) -> Tensor:
    """Activations of layer i for the packed tokens; after the last layer, its output."""
    activations = ctx.activations[i]
    if ctx.activation_index is None:
        return activations
    count = len(ctx.packed.token)
    out = ctx.backend.scratch.get("activations", count, activations.shape[1], activations)
    return torch.index_select(activations, 0, ctx.activation_index, out=out)
