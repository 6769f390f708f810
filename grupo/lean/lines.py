"""A line of tokens through the layers, and the way back: matrix products, and C between them."""

import ctypes
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, Protocol

import torch
from jaxtyping import Float
from torch import Tensor

from grupo.lean import structures
from grupo.lean.layers import Layer
from grupo.packing.parts import How

Slopes = dict[str, Tensor]  # of weights, by name


class Sees(Protocol):
    """Who sees whom in a line."""

    def see(self, layer: int, q: Tensor, k: Tensor, v: Tensor, how: How) -> tuple[Tensor, Tensor]:
        """Outputs (M, H, d) and log-normalisers (M, H) of queries (M, H, d), keys, values."""
        ...


class Blames(Sees, Protocol):
    """Who knows the way back too."""

    def blame(
        self, slope: Tensor, saved: Sequence[Tensor], how: How
    ) -> tuple[Tensor, Tensor, Tensor]:
        """Slopes of q, k, v, where `saved` are these, outputs and log-normalisers."""
        ...


@dataclass(frozen=True)
class Columns:
    """Where in a record things are, as `rows.h` has it."""

    x: slice
    q: slice
    k: slice
    v: slice
    seen: slice
    total: slice
    y: slice
    gate: slice
    up: slice

    @classmethod
    def of(cls, s: structures.Shape) -> "Columns":
        wide, narrow = s.H * s.d, s.K * s.d
        sizes = s.h, wide, narrow, narrow, wide, s.H, s.h, s.I, s.I
        ends = torch.tensor([0, *sizes]).cumsum(0).tolist()
        return cls(*(slice(a, b) for a, b in pairwise(ends)))

    @property
    def width(self) -> int:
        """Of a record."""
        return self.up.stop


@dataclass(frozen=True)
class Lines:
    """Lines of tokens whose angles are `cos` and `sin` (M, d)."""

    c: ctypes.CDLL
    shape: structures.Shape
    columns: Columns
    cos: Tensor
    sin: Tensor

    def forward(self, number: int, layer: Layer, record: Tensor, x: Tensor, sees: Sees) -> Tensor:
        """Fill in a layer's records of what it reads; what comes out."""
        at = self.columns
        record[:, at.x] = x
        normed = self.norm(record[:, at.x], layer.norm)
        for name in "qkv":
            _into(record[:, getattr(at, name)], normed, layer, name)
        seen, total = sees.see(number, *self._turned(layer, record), layer.how)
        record[:, at.seen], record[:, at.total] = seen.flatten(1), total
        torch.addmm(record[:, at.x], record[:, at.seen], layer.o.mT, out=record[:, at.y])
        normed = self.norm(record[:, at.y], layer.norm2)
        for name in ("gate", "up"):
            _into(record[:, getattr(at, name)], normed, layer, name)
        return torch.addmm(record[:, at.y], self._act(record), layer.down.mT)

    def backward(
        self, layer: Layer, record: Tensor, slope: Tensor, blames: Blames
    ) -> tuple[Tensor, Slopes]:
        """Slopes of what a layer read, and of its weights, from those of what came out."""
        at = self.columns
        slopes = {"down": slope.mT @ self._act(record)}
        mlp = self._act_back(record, slope @ layer.down)
        gate, up = mlp.split(self.shape.I, 1)
        normed = self.norm(record[:, at.y], layer.norm2)
        slopes |= {"gate": gate.mT @ normed, "up": up.mT @ normed}
        dy, slopes["norm2"] = self.norm_back(
            record[:, at.y], layer.norm2, (gate @ layer.gate).addmm_(up, layer.up), slope
        )
        slopes["o"] = dy.mT @ record[:, at.seen]
        qkv = self._turned(layer, record)
        heads = (self.shape.H, self.shape.d)
        saved = *qkv, record[:, at.seen].unflatten(1, heads), record[:, at.total]
        blamed = blames.blame((dy @ layer.o).unflatten(1, heads), saved, layer.how)
        projected, turned = self._turn_back(layer, record, blamed)
        normed, reach = self.norm(record[:, at.x], layer.norm), None
        sizes = [(self.shape.H if name == "q" else self.shape.K) * self.shape.d for name in "qkv"]
        for name, own in zip("qkv", projected.split(sizes, 1), strict=True):
            slopes[name] = own.mT @ normed
            slopes[f"{name}b"] = own.sum(0)
            weight = layer.weights[name]
            reach = own @ weight if reach is None else reach.addmm_(own, weight)
        assert reach is not None
        dx, slopes["norm"] = self.norm_back(record[:, at.x], layer.norm, reach, dy)
        return dx, slopes | turned

    def norm(self, x: Tensor, weight: Tensor) -> Tensor:
        """Of rows: each by the root of its mean square, times weights."""
        out = x.new_empty(x.shape)
        self._call("norms", len(x), x, x.stride(0), weight, out)
        return out

    def norm_back(
        self, x: Tensor, weight: Tensor, slope: Tensor, beside: Tensor
    ) -> tuple[Tensor, Tensor]:
        """Slopes of the rows, with those `beside` them, and of the weights."""
        dx, dw = beside.clone(), x.new_zeros(self.shape.threads, x.shape[1])
        self._call("norms_back", len(x), x, x.stride(0), weight, slope, dx, dw)
        return dx, dw.sum(0)

    def _turned(self, layer: Layer, record: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        s, m = self.shape, len(record)
        q, k = (record.new_empty(m, heads, s.d) for heads in (s.H, s.K))
        self._call("turns", layer, m, record, self.cos, self.sin, q, k)
        return q, k, record[:, self.columns.v].unflatten(1, (s.K, s.d))

    def _turn_back(
        self, layer: Layer, record: Tensor, slopes: Sequence[Tensor]
    ) -> tuple[Tensor, Slopes]:
        s, m = self.shape, len(record)
        out, norms = record.new_empty(m, (s.H + 2 * s.K) * s.d), record.new_zeros(s.threads, 2, s.d)
        told = [x.contiguous() for x in slopes]
        self._call("turns_back", layer, m, record, self.cos, self.sin, *told, out, norms)
        qn, kn = norms.sum(0)
        return out, {"qn": qn, "kn": kn}

    def _act(self, record: Tensor) -> Tensor:
        out = record.new_empty(len(record), self.shape.I)
        self._call("swiglus", len(record), record[:, self.columns.gate], record.stride(0), out)
        return out

    def _act_back(self, record: Tensor, slope: Tensor) -> Tensor:
        out = record.new_empty(len(record), 2 * self.shape.I)
        gate = record[:, self.columns.gate]
        self._call("swiglus_back", len(record), gate, record.stride(0), slope, out)
        return out

    def _call(self, name: str, *told: Any) -> None:
        getattr(self.c, name)(ctypes.byref(self.shape), *map(_c, told))


def _c(told: Any) -> Any:
    match told:
        case Tensor():
            return ctypes.c_void_p(told.data_ptr())
        case Layer():
            return ctypes.byref(told.told)
        case _:
            return ctypes.c_int64(told)


def _into(place: Tensor, x: Float[Tensor, "M n"], layer: Layer, name: str) -> None:
    """A projection, with its bias if there is one."""
    weight, bias = layer.weights[name].mT, layer.weights.get(f"{name}b")
    if bias is None:
        torch.mm(x, weight, out=place)
    else:
        torch.addmm(bias, x, weight, out=place)
