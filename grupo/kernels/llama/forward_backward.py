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
from grupo.kernels.llama.activation_cache import Columns, Scratch
from grupo.kernels.llama.layers import Layer
from grupo.kernels.packing.hf_attention import Sees
from grupo.kernels.packing.tree_attention import Tree

Slopes = dict[str, Tensor]  # of weights, by name
Asked = Tensor | None  # of which tokens what comes out is asked for; None: of all


@dataclass(frozen=True)
class Lines:
    """Lines of tokens whose angles are `cos` and `sin` (M, d)."""

    c: ctypes.CDLL
    shape: ctypes_structs.Shape
    columns: Columns
    scratch: Scratch
    cos: Tensor
    sin: Tensor

    def forward(
        self, number: int, layer: Layer, record: Tensor, x: Tensor, sees: Sees, asked: Asked
    ) -> Tensor:
        """Fill in a layer's records of what it reads; what comes out, where it is asked for."""
        self._attend(number, layer, record, x, sees)
        if asked is None:
            return self._mlp(layer, record)
        some = record[asked]
        out = self._mlp(layer, some)
        record[asked] = some
        return out

    def _attend(self, number: int, layer: Layer, record: Tensor, x: Tensor, sees: Sees) -> None:
        at = self.columns
        record[:, at.x] = x
        normed = self._normed(record[:, at.x], layer.norm)
        for name in "qkv":
            _into(record[:, getattr(at, name)], normed, layer, name)
        seen, total = sees.see(number, *self._turned(layer, record), layer.how)
        record[:, at.seen], record[:, at.total] = seen.flatten(1), total

    def _mlp(self, layer: Layer, record: Tensor) -> Tensor:
        at = self.columns
        torch.addmm(record[:, at.x], record[:, at.seen], layer.o.mT, out=record[:, at.y])
        normed = self._normed(record[:, at.y], layer.norm2)
        for name in ("gate", "up"):
            _into(record[:, getattr(at, name)], normed, layer, name)
        return torch.addmm(record[:, at.y], self._act(record), layer.down.mT)

    def backward(
        self, layer: Layer, record: Tensor, slope: Tensor, tree: Tree, asked: Asked
    ) -> tuple[Tensor, Slopes]:
        """Slopes of what a layer read, and of its weights, from those of what came out."""
        some = record if asked is None else record[asked]
        slope, mlp = self._mlp_back(layer, some, slope)
        if asked is not None:
            slope = slope.new_zeros(len(record), slope.shape[1]).index_copy_(0, asked, slope)
        slope, attention = self._attention_back(layer, record, slope, tree)
        return slope, mlp | attention

    def _mlp_back(self, layer: Layer, record: Tensor, slope: Tensor) -> tuple[Tensor, Slopes]:
        act, y = self._act(record), record[:, self.columns.y]
        slopes = {"down": slope.mT @ act}
        torch.mm(slope, layer.down, out=act)
        both = self._act_back(record, act)
        normed = self._normed(y, layer.norm2)
        slopes["gate"], slopes["up"] = (both.mT @ normed).split(self.shape.I)
        gate, up = both.split(self.shape.I, 1)
        torch.mm(gate, layer.gate, out=normed).addmm_(up, layer.up)
        dy, slopes["norm2"] = self.norm_back(y, layer.norm2, normed, slope)
        return dy, slopes

    def _attention_back(
        self, layer: Layer, record: Tensor, slope: Tensor, tree: Tree
    ) -> tuple[Tensor, Slopes]:
        at, s, x = self.columns, self.shape, record[:, self.columns.x]
        slopes = {"o": slope.mT @ record[:, at.seen]}
        heads, seen = (s.H, s.d), torch.mm(slope, layer.o, out=self._room("seen", s.H * s.d, x))
        saved = record[:, at.seen].unflatten(1, heads), record[:, at.total]
        qkv = self._turned(layer, record)
        blamed = tree.blame(seen.unflatten(1, heads), (*qkv, *saved), layer.how)
        projected, turned = self._turn_back(layer, record, blamed)
        normed, sizes = self._normed(x, layer.norm), [s.H * s.d, s.K * s.d, s.K * s.d]
        slopes |= dict(zip("qkv", (projected.mT @ normed).split(sizes), strict=True)) | turned
        if "qb" in layer.weights:
            slopes |= dict(zip(("qb", "kb", "vb"), projected.sum(0).split(sizes), strict=True))
        q, k, v = projected.split(sizes, 1)
        torch.mm(q, layer.q, out=normed).addmm_(k, layer.k).addmm_(v, layer.v)
        dx, slopes["norm"] = self.norm_back(x, layer.norm, normed, slope)
        return dx, slopes

    def norm(self, x: Tensor, weight: Tensor) -> Tensor:
        """Of rows: each by the root of its mean square, times weights."""
        return self._norm(x, weight, x.new_empty(x.shape))

    def norm_back(
        self, x: Tensor, weight: Tensor, slope: Tensor, beside: Tensor
    ) -> tuple[Tensor, Tensor]:
        """Slopes of the rows, with those `beside` them, and of the weights."""
        dx, dw = beside.clone(), x.new_zeros(self.shape.threads, x.shape[1])
        self.call("norms_back", len(x), x, x.stride(0), weight, slope, dx, dw)
        return dx, dw.sum(0)

    def _norm(self, x: Tensor, weight: Tensor, out: Tensor) -> Tensor:
        self.call("norms", len(x), x, x.stride(0), weight, out)
        return out

    def _normed(self, x: Tensor, weight: Tensor) -> Tensor:
        return self._norm(x, weight, self._room("normed", x.shape[1], x))

    def _room(self, name: str, width: int, like: Tensor) -> Tensor:
        return self.scratch.room(name, len(like), width, like)

    def _turned(self, layer: Layer, record: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        s, m = self.shape, len(record)
        q = self._room("q", s.H * s.d, record).view(m, s.H, s.d)
        k = self._room("k", s.K * s.d, record).view(m, s.K, s.d)
        self.call("turns", layer.told, m, record, self.cos, self.sin, q, k)
        return q, k, record[:, self.columns.v].unflatten(1, (s.K, s.d))

    def _turn_back(
        self, layer: Layer, record: Tensor, slopes: Sequence[Tensor]
    ) -> tuple[Tensor, Slopes]:
        s, m = self.shape, len(record)
        out = self._room("projected", (s.H + 2 * s.K) * s.d, record)
        norms = record.new_zeros(s.threads, 2, s.d)
        told = [x.contiguous() for x in slopes]
        self.call("turns_back", layer.told, m, record, self.cos, self.sin, *told, out, norms)
        qn, kn = norms.sum(0)
        return out, {"qn": qn, "kn": kn}

    def _act(self, record: Tensor) -> Tensor:
        out = self._room("act", self.shape.I, record)
        self.call("swiglus", len(record), record[:, self.columns.gate], record.stride(0), out)
        return out

    def _act_back(self, record: Tensor, slope: Tensor) -> Tensor:
        out = self._room("both", 2 * self.shape.I, record)
        gate = record[:, self.columns.gate]
        self.call("swiglus_back", len(record), gate, record.stride(0), slope, out)
        return out

    def call(self, name: str, *told: Any) -> Any:
        """A function of C, of the shape and of what else it is told."""
        return native.call(self.c, name, self.shape, *told)


def _into(place: Tensor, x: Float[Tensor, "M n"], layer: Layer, name: str) -> None:
    """A projection, with its bias if there is one."""
    weight, bias = layer.weights[name].mT, layer.weights.get(f"{name}b")
    if bias is None:
        torch.mm(x, weight, out=place)
    else:
        torch.addmm(bias, x, weight, out=place)
