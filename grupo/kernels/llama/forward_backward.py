"""A line of tokens through the layers, and the way back: matrix products, and C between them."""

import ctypes
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor

from grupo.kernels import native
from grupo.kernels.llama import ctypes_structs
from grupo.kernels.llama.activation_cache import ActivationLayout, ScratchBuffers
from grupo.kernels.llama.layers import LayerWeights
from grupo.kernels.packing.hf_attention import AttentionWithLSE
from grupo.kernels.packing.tree_attention import TreeAttention

WeightGrads = dict[str, Tensor]  # of weights, by name
OutputIndex = Tensor | None  # of which tokens what comes out is asked for; None: of all


@dataclass(frozen=True)
class LayerOps:
    """Lines of tokens whose angles are `cos` and `sin` (M, d)."""

    library: ctypes.CDLL
    shape: ctypes_structs.ModelShape
    activation_layout: ActivationLayout
    scratch: ScratchBuffers
    cos: Tensor
    sin: Tensor

    def forward(
        self,
        layer_index: int,
        layer: LayerWeights,
        activations: Tensor,
        x: Tensor,
        attention: AttentionWithLSE,
        output_index: OutputIndex,
    ) -> Tensor:
        """Fill in a layer's records of what it reads; what comes out, where it is asked for."""
        self._attend(layer_index, layer, activations, x, attention)
        if output_index is None:
            return self._mlp(layer, activations)
        some = activations[output_index]
        out = self._mlp(layer, some)
        activations[output_index] = some
        return out

    def _attend(
        self,
        layer_index: int,
        layer: LayerWeights,
        activations: Tensor,
        x: Tensor,
        attention: AttentionWithLSE,
    ) -> None:
        at = self.activation_layout
        activations[:, at.x] = x
        normed = self._norm_scratch(activations[:, at.x], layer.norm)
        for name in "qkv":
            _project(activations[:, getattr(at, name)], normed, layer, name)
        seen, total = attention.attend_with_lse(
            layer_index, *self._rotated_qkv(layer, activations), layer.attention_config
        )
        activations[:, at.attn_out], activations[:, at.lse] = seen.flatten(1), total

    def _mlp(self, layer: LayerWeights, activations: Tensor) -> Tensor:
        at = self.activation_layout
        torch.addmm(
            activations[:, at.x],
            activations[:, at.attn_out],
            layer.o.mT,
            out=activations[:, at.residual],
        )
        normed = self._norm_scratch(activations[:, at.residual], layer.norm2)
        for name in ("gate", "up"):
            _project(activations[:, getattr(at, name)], normed, layer, name)
        return torch.addmm(
            activations[:, at.residual], self._swiglu(activations), layer.downsample.mT
        )

    def backward(
        self,
        layer: LayerWeights,
        activations: Tensor,
        grad: Tensor,
        tree: TreeAttention,
        output_index: OutputIndex,
    ) -> tuple[Tensor, WeightGrads]:
        """Slopes of what a layer read, and of its weights, from those of what came out."""
        some = activations if output_index is None else activations[output_index]
        grad, mlp = self._mlp_backward(layer, some, grad)
        if output_index is not None:
            grad = grad.new_zeros(len(activations), grad.shape[1]).index_copy_(
                0, output_index, grad
            )
        grad, attention = self._attention_backward(layer, activations, grad, tree)
        return grad, mlp | attention

    def _mlp_backward(
        self, layer: LayerWeights, activations: Tensor, grad: Tensor
    ) -> tuple[Tensor, WeightGrads]:
        act, y = self._swiglu(activations), activations[:, self.activation_layout.residual]
        slopes = {"down": grad.mT @ act}
        torch.mm(grad, layer.downsample, out=act)
        both = self._swiglu_backward(activations, act)
        normed = self._norm_scratch(y, layer.norm2)
        slopes["gate"], slopes["up"] = (both.mT @ normed).split(self.shape.I)
        gate, up = both.split(self.shape.I, 1)
        torch.mm(gate, layer.gate, out=normed).addmm_(up, layer.up)
        dy, slopes["norm2"] = self.norm_backward(y, layer.norm2, normed, grad)
        return dy, slopes

    def _attention_backward(
        self, layer: LayerWeights, activations: Tensor, grad: Tensor, tree: TreeAttention
    ) -> tuple[Tensor, WeightGrads]:
        at, s, x = self.activation_layout, self.shape, activations[:, self.activation_layout.x]
        slopes = {"o": grad.mT @ activations[:, at.attn_out]}
        heads, seen = (
            (s.H, s.d),
            torch.mm(grad, layer.o, out=self._scratch_buffer("seen", s.H * s.d, x)),
        )
        saved = activations[:, at.attn_out].unflatten(1, heads), activations[:, at.lse]
        qkv = self._rotated_qkv(layer, activations)
        blamed = tree.backward(seen.unflatten(1, heads), (*qkv, *saved), layer.attention_config)
        projected, turned = self._rotary_backward(layer, activations, blamed)
        normed, sizes = self._norm_scratch(x, layer.norm), [s.H * s.d, s.K * s.d, s.K * s.d]
        slopes |= dict(zip("qkv", (projected.mT @ normed).split(sizes), strict=True)) | turned
        if "qb" in layer.weights:
            slopes |= dict(zip(("qb", "kb", "vb"), projected.sum(0).split(sizes), strict=True))
        q, k, v = projected.split(sizes, 1)
        torch.mm(q, layer.q, out=normed).addmm_(k, layer.k).addmm_(v, layer.v)
        dx, slopes["norm"] = self.norm_backward(x, layer.norm, normed, grad)
        return dx, slopes

    def norm(self, x: Tensor, weight: Tensor) -> Tensor:
        """Of rows: each by the root of its mean square, times weights."""
        return self._norm_into(x, weight, x.new_empty(x.shape))

    def norm_backward(
        self, x: Tensor, weight: Tensor, grad: Tensor, residual_grad: Tensor
    ) -> tuple[Tensor, Tensor]:
        """Slopes of the rows, with those `beside` them, and of the weights."""
        dx, dw = residual_grad.clone(), x.new_zeros(self.shape.threads, x.shape[1])
        self.call_native("norms_back", len(x), x, x.stride(0), weight, grad, dx, dw)
        return dx, dw.sum(0)

    def _norm_into(self, x: Tensor, weight: Tensor, out: Tensor) -> Tensor:
        self.call_native("norms", len(x), x, x.stride(0), weight, out)
        return out

    def _norm_scratch(self, x: Tensor, weight: Tensor) -> Tensor:
        return self._norm_into(x, weight, self._scratch_buffer("normed", x.shape[1], x))

    def _scratch_buffer(self, name: str, width: int, like: Tensor) -> Tensor:
        return self.scratch.get(name, len(like), width, like)

    def _rotated_qkv(
        self, layer: LayerWeights, activations: Tensor
    ) -> tuple[Tensor, Tensor, Tensor]:
        s, m = self.shape, len(activations)
        q = self._scratch_buffer("q", s.H * s.d, activations).view(m, s.H, s.d)
        k = self._scratch_buffer("k", s.K * s.d, activations).view(m, s.K, s.d)
        self.call_native("turns", layer.pointers, m, activations, self.cos, self.sin, q, k)
        return q, k, activations[:, self.activation_layout.v].unflatten(1, (s.K, s.d))

    def _rotary_backward(
        self, layer: LayerWeights, activations: Tensor, grads: Sequence[Tensor]
    ) -> tuple[Tensor, WeightGrads]:
        s, m = self.shape, len(activations)
        out = self._scratch_buffer("projected", (s.H + 2 * s.K) * s.d, activations)
        norms = activations.new_zeros(s.threads, 2, s.d)
        told = [x.contiguous() for x in grads]
        self.call_native(
            "turns_back", layer.pointers, m, activations, self.cos, self.sin, *told, out, norms
        )
        qn, kn = norms.sum(0)
        return out, {"qn": qn, "kn": kn}

    def _swiglu(self, activations: Tensor) -> Tensor:
        out = self._scratch_buffer("act", self.shape.I, activations)
        self.call_native(
            "swiglus",
            len(activations),
            activations[:, self.activation_layout.gate],
            activations.stride(0),
            out,
        )
        return out

    def _swiglu_backward(self, activations: Tensor, grad: Tensor) -> Tensor:
        out = self._scratch_buffer("both", 2 * self.shape.I, activations)
        gate = activations[:, self.activation_layout.gate]
        self.call_native("swiglus_back", len(activations), gate, activations.stride(0), grad, out)
        return out

    def call_native(self, name: str, *args: Any) -> Any:
        """A function of C, of the shape and of what else it is told."""
        return native.call(self.library, name, self.shape, *args)


def _project(out: Tensor, x: Float[Tensor, "M n"], layer: LayerWeights, name: str) -> None:
    """A projection, with its bias if there is one."""
    weight, bias = layer.weights[name].mT, layer.weights.get(f"{name}b")
    if bias is None:
        torch.mm(x, weight, out=out)
    else:
        torch.addmm(bias, x, weight, out=out)
