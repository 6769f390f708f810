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
from grupo.kernels.llama.low_rank import LowRank
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
            self._project(layer, name, normed, out, layer.weights.get(f"{name}b"))
        qkv = self._rotated_qkv(layer, activations)
        out, lse = attention.attend_with_lse(layer_index, *qkv, layer.attention_config)
        activations[:, columns.attn_out] = out.flatten(1)
        activations[:, columns.lse] = lse

    def _mlp(self, layer: LayerWeights, activations: Tensor) -> Tensor:
        columns = self.activation_layout
        x = activations[:, columns.x]
        attn_out = activations[:, columns.attn_out]
        residual = activations[:, columns.residual]
        operand = self.products.operand
        self._project(layer, "o", operand(attn_out), residual, x)
        normed = self._normed_operand(residual, layer.norm2)
        for name in ("gate", "up"):
            self._project(layer, name, normed, activations[:, getattr(columns, name)])
        out = torch.empty_like(residual, memory_format=torch.contiguous_format)
        self._project(layer, "down", operand(self._swiglu(activations)), out, residual)
        return out

    def _project(
        self, layer: LayerWeights, name: str, x: Tensor, out: Tensor, added: Tensor | None = None
    ) -> None:
        """Writes a projection of the operand x, plus `added`, into `out`."""
        terms = [(x, layer.weights[name])]
        if low_rank := layer.adapter(name):
            terms.append((self._low_rank_input(low_rank, x), low_rank.b))
        self.products.linear(*terms, out=out, added=added)

    def _low_rank_input(self, low_rank: LowRank, x: Tensor) -> Tensor:
        """The operand (M, r) that the second matrix of an adapter multiplies."""
        out = self.cos.new_empty(len(x), len(low_rank.a))
        self.products.linear((x, low_rank.a), out=out)
        return self.products.operand(out.mul_(low_rank.scale))

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
        act = self._swiglu(activations)
        residual = activations[:, self.activation_layout.residual]
        weight_grads = self._project_backward(layer, ("down",), act, grad, out=act)
        grad_gate_up = self._swiglu_backward(activations, act)
        normed = self._norm_scratch(residual, layer.norm2)
        names = ("gate", "up")
        weight_grads |= self._project_backward(layer, names, normed, grad_gate_up, out=normed)
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
        grad_out = self._scratch_buffer("attn_out", s.H * s.d, x)
        weight_grads = self._project_backward(layer, ("o",), attn_out, grad, out=grad_out)
        saved = attn_out.unflatten(1, heads), activations[:, columns.lse]
        qkv = self._rotated_qkv(layer, activations)
        rotated_grads = tree.backward(
            grad_out.unflatten(1, heads), (*qkv, *saved), layer.attention_config
        )
        grad_qkv, norm_grads = self._rotary_backward(layer, activations, rotated_grads)
        weight_grads |= norm_grads | self._bias_grads(layer, grad_qkv)
        normed = self._norm_scratch(x, layer.norm)
        names = ("q", "k", "v")
        weight_grads |= self._project_backward(layer, names, normed, grad_qkv, out=normed)
        dx, weight_grads["norm"] = self.norm_backward(x, layer.norm, normed, grad)
        return dx, weight_grads

    def _project_backward(
        self, layer: LayerWeights, names: Sequence[str], x: Tensor, grad: Tensor, *, out: Tensor
    ) -> WeightGrads:
        """Gradients of the weights of some projections of x; writes that of x into `out`.

        The columns of `grad` are those of the projections' outputs, one after the other. `out` may
        be the memory of x.
        """
        products = self.products
        x = products.operand(x)
        grad = products.operand(grad)
        sizes = [len(layer.weights[name]) for name in names]
        grads = dict(zip(names, grad.split(sizes, 1), strict=True))
        terms = [(grads[name], layer.weights[name]) for name in names]
        weight_grads: WeightGrads = {}
        if layer.is_trained(*names):
            split = products.weight_gradient(grad, x).split(sizes)
            weight_grads |= dict(zip(names, split, strict=True))
        for name in names:
            if low_rank := layer.adapter(name):
                a, b, grad_low = self._low_rank_backward(low_rank, x, grads[name])
                weight_grads |= {f"{name}.a": a, f"{name}.b": b}
                terms.append((grad_low, low_rank.a))
        products.input_gradient(*terms, out=out)
        return weight_grads

    def _low_rank_backward(
        self, low_rank: LowRank, x: Tensor, grad: Tensor
    ) -> tuple[Tensor, Tensor, Tensor]:
        """Gradients of both matrices of an adapter, and the operand (M, r) that `a` multiplies."""
        products = self.products
        out = self.cos.new_empty(len(x), len(low_rank.a))
        products.input_gradient((grad, low_rank.b), out=out)
        grad_low = products.operand(out.mul_(low_rank.scale))
        grad_b = products.weight_gradient(grad, self._low_rank_input(low_rank, x))
        return products.weight_gradient(grad_low, x), grad_b, grad_low

    def _bias_grads(self, layer: LayerWeights, grad_qkv: Tensor) -> WeightGrads:
        names = ("qb", "kb", "vb")
        if not layer.is_trained(*names):
            return {}
        sizes = [len(layer.weights[name]) for name in names]
        return dict(zip(names, grad_qkv.sum(0).split(sizes), strict=True))

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
