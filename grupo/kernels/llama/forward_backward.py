"""Forward and backward pass of one layer: matrix products of torch with C operations between."""

import ctypes
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from grupo.kernels import native
from grupo.kernels.llama import ctypes_structs
from grupo.kernels.llama.activation_cache import ActivationLayout, ScratchBuffers
from grupo.kernels.llama.layers import LayerWeights
from grupo.kernels.llama.products import Products
from grupo.kernels.packing.hf_attention import AttentionWithLSE
from grupo.kernels.packing.tree_attention import TreeAttention

WeightGrads = dict[str, Tensor]  # gradients of weights, by name
OutputIndex = Tensor | None  # tokens whose output is needed; None: all tokens


@dataclass(frozen=True)
class LayerOps:
    """Operations of the layers on M packed tokens.

    Args:
        library: the compiled C functions.
        shape: sizes of the model.
        activation_layout: columns of `activations` in the methods.
        scratch: buffers for intermediate results.
        cos: cosines (M, d) of the rotary angles.
        sin: sines (M, d) of the rotary angles.
        products: how matrices are multiplied.
    """

    library: ctypes.CDLL
    shape: ctypes_structs.ModelShape
    activation_layout: ActivationLayout
    scratch: ScratchBuffers
    cos: Tensor
    sin: Tensor
    products: Products

    def forward(
        self,
        layer_index: int,
        layer: LayerWeights,
        activations: Tensor,
        x: Tensor,
        attention: AttentionWithLSE,
        output_index: OutputIndex,
    ) -> Tensor:
        """Fills in the activations (M, width) of a layer with input x (M, h).

        Returns the layer's output for the tokens in `output_index`.
        """
        self._attend(layer_index, layer, activations, x, attention)
        if output_index is None:
            return self._mlp(layer, activations)
        selected = activations[output_index]
        out = self._mlp(layer, selected)
        activations[output_index] = selected
        return out

    def _attend(
        self,
        layer_index: int,
        layer: LayerWeights,
        activations: Tensor,
        x: Tensor,
        attention: AttentionWithLSE,
    ) -> None:
        columns = self.activation_layout
        activations[:, columns.x] = x
        normed = self._normed_operand(activations[:, columns.x], layer.norm)
        for name in "qkv":
            out = activations[:, getattr(columns, name)]
            self.products.linear(normed, layer.weights[name], out, layer.weights.get(f"{name}b"))
        qkv = self._rotated_qkv(layer, activations)
        out, lse = attention.attend_with_lse(layer_index, *qkv, layer.attention_config)
        activations[:, columns.attn_out] = out.flatten(1)
        activations[:, columns.lse] = lse

    def _mlp(self, layer: LayerWeights, activations: Tensor) -> Tensor:
        columns = self.activation_layout
        x = activations[:, columns.x]
        attn_out = activations[:, columns.attn_out]
        residual = activations[:, columns.residual]
        products = self.products
        products.linear(products.operand(attn_out), layer.o, residual, x)
        normed = self._normed_operand(residual, layer.norm2)
        for name in ("gate", "up"):
            products.linear(normed, layer.weights[name], activations[:, getattr(columns, name)])
        out = torch.empty_like(residual, memory_format=torch.contiguous_format)
        products.linear(products.operand(self._swiglu(activations)), layer.down, out, residual)
        return out

    def backward(
        self,
        layer: LayerWeights,
        activations: Tensor,
        grad: Tensor,
        tree: TreeAttention,
        output_index: OutputIndex,
    ) -> tuple[Tensor, WeightGrads]:
        """Gradients of the input (M, h) and the weights of a layer.

        `grad` is the gradient of the output for the tokens in `output_index`.
        """
        selected = activations if output_index is None else activations[output_index]
        grad, mlp_grads = self._mlp_backward(layer, selected, grad)
        if output_index is not None:
            full = grad.new_zeros(len(activations), grad.shape[1])
            grad = full.index_copy_(0, output_index, grad)
        grad, attention_grads = self._attention_backward(layer, activations, grad, tree)
        return grad, mlp_grads | attention_grads

    def _mlp_backward(
        self, layer: LayerWeights, activations: Tensor, grad: Tensor
    ) -> tuple[Tensor, WeightGrads]:
        products = self.products
        act = self._swiglu(activations)
        residual = activations[:, self.activation_layout.residual]
        grad_operand = products.operand(grad)
        weight_grads = {"down": products.weight_gradient(grad_operand, products.operand(act))}
        products.input_gradient((grad_operand, layer.down), out=act)
        grad_gate_up = products.operand(self._swiglu_backward(activations, act))
        normed = self._norm_scratch(residual, layer.norm2)
        gate_up = products.weight_gradient(grad_gate_up, products.operand(normed))
        weight_grads["gate"], weight_grads["up"] = gate_up.split(self.shape.I)
        grad_gate, grad_up = grad_gate_up.split(self.shape.I, 1)
        products.input_gradient((grad_gate, layer.gate), (grad_up, layer.up), out=normed)
        dx, weight_grads["norm2"] = self.norm_backward(residual, layer.norm2, normed, grad)
        return dx, weight_grads

    def _attention_backward(
        self, layer: LayerWeights, activations: Tensor, grad: Tensor, tree: TreeAttention
    ) -> tuple[Tensor, WeightGrads]:
        columns = self.activation_layout
        s = self.shape
        x = activations[:, columns.x]
        attn_out = activations[:, columns.attn_out]
        heads = (s.H, s.d)
        sizes = [s.H * s.d, s.K * s.d, s.K * s.d]
        products = self.products
        grad_operand = products.operand(grad)
        weight_grads = {"o": products.weight_gradient(grad_operand, products.operand(attn_out))}
        grad_out = self._scratch_buffer("attn_out", s.H * s.d, x)
        products.input_gradient((grad_operand, layer.o), out=grad_out)
        saved = attn_out.unflatten(1, heads), activations[:, columns.lse]
        qkv = self._rotated_qkv(layer, activations)
        rotated_grads = tree.backward(
            grad_out.unflatten(1, heads), (*qkv, *saved), layer.attention_config
        )
        grad_qkv, norm_grads = self._rotary_backward(layer, activations, rotated_grads)
        normed = self._norm_scratch(x, layer.norm)
        grad_operand = products.operand(grad_qkv)
        qkv_grad = products.weight_gradient(grad_operand, products.operand(normed))
        weight_grads |= dict(zip("qkv", qkv_grad.split(sizes), strict=True))
        weight_grads |= norm_grads
        if "qb" in layer.weights:
            bias_grads = grad_qkv.sum(0).split(sizes)
            weight_grads |= dict(zip(("qb", "kb", "vb"), bias_grads, strict=True))
        weights = (layer.q, layer.k, layer.v)
        terms = zip(grad_operand.split(sizes, 1), weights, strict=True)
        products.input_gradient(*terms, out=normed)
        dx, weight_grads["norm"] = self.norm_backward(x, layer.norm, normed, grad)
        return dx, weight_grads

    def norm(self, x: Tensor, weight: Tensor) -> Tensor:
        """RMS norm of the rows of x, times the weight."""
        return self._norm_into(x, weight, x.new_empty(x.shape))

    def norm_backward(
        self, x: Tensor, weight: Tensor, grad: Tensor, residual_grad: Tensor
    ) -> tuple[Tensor, Tensor]:
        """Gradients of x, with `residual_grad` added, and of the weight."""
        dx = residual_grad.clone()
        dw = x.new_zeros(self.shape.threads, x.shape[1])
        self.call_native("norm_rows_backward", len(x), x, x.stride(0), weight, grad, dx, dw)
        return dx, dw.sum(0)

    def _norm_into(self, x: Tensor, weight: Tensor, out: Tensor) -> Tensor:
        self.call_native("norm_rows", len(x), x, x.stride(0), weight, out)
        return out

    def _norm_scratch(self, x: Tensor, weight: Tensor) -> Tensor:
        return self._norm_into(x, weight, self._scratch_buffer("norm_out", x.shape[1], x))

    def _normed_operand(self, x: Tensor, weight: Tensor) -> Tensor:
        return self.products.operand(self._norm_scratch(x, weight))

    def _scratch_buffer(self, name: str, width: int, like: Tensor) -> Tensor:
        return self.scratch.get(name, len(like), width, like)

    def _rotated_qkv(
        self, layer: LayerWeights, activations: Tensor
    ) -> tuple[Tensor, Tensor, Tensor]:
        s = self.shape
        m = len(activations)
        q = self._scratch_buffer("q", s.H * s.d, activations).view(m, s.H, s.d)
        k = self._scratch_buffer("k", s.K * s.d, activations).view(m, s.K, s.d)
        self.call_native("rotate_rows", layer.pointers, m, activations, self.cos, self.sin, q, k)
        return q, k, activations[:, self.activation_layout.v].unflatten(1, (s.K, s.d))

    def _rotary_backward(
        self, layer: LayerWeights, activations: Tensor, grads: Sequence[Tensor]
    ) -> tuple[Tensor, WeightGrads]:
        """Gradients of the projections (M, (H + 2K) d) and of the query and key norms."""
        s = self.shape
        m = len(activations)
        out = self._scratch_buffer("grad_qkv", (s.H + 2 * s.K) * s.d, activations)
        norm_grads = activations.new_zeros(s.threads, 2, s.d)
        angles = (self.cos, self.sin)
        dense = [x.contiguous() for x in grads]
        args = layer.pointers, m, activations, *angles, *dense, out, norm_grads
        self.call_native("rotate_rows_backward", *args)
        qn, kn = norm_grads.sum(0)
        return out, {"qn": qn, "kn": kn}

    def _swiglu(self, activations: Tensor) -> Tensor:
        out = self._scratch_buffer("act", self.shape.I, activations)
        gate = activations[:, self.activation_layout.gate]
        self.call_native("swiglu_rows", len(activations), gate, activations.stride(0), out)
        return out

    def _swiglu_backward(self, activations: Tensor, grad: Tensor) -> Tensor:
        out = self._scratch_buffer("grad_gate_up", 2 * self.shape.I, activations)
        gate = activations[:, self.activation_layout.gate]
        args = len(activations), gate, activations.stride(0), grad, out
        self.call_native("swiglu_rows_backward", *args)
        return out

    def call_native(self, name: str, *args: Any) -> Any:
        """Calls a C function whose first argument is the model's shape."""
        return native.call(self.library, name, self.shape, *args)
