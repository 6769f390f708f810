"""Rows whole, with a gradient: read, or found to have been read by the same weights."""

from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable

from grupo.kernels.llama.forward_backward import OutputIndex
from grupo.kernels.packing.prefix_trie import PackedTokens
from grupo.kernels.packing.tree_attention import TreeAttention

if TYPE_CHECKING:
    from grupo.kernels.llama.backend import NativeLlamaBackend


class CachedForward(torch.autograd.Function):
    """Last hidden states of a line, of the tokens that are `asked` for; `at`: where the records of
    its tokens are, if they are.
    """

    @staticmethod
    def forward(
        ctx: Any,
        backend: "NativeLlamaBackend",
        packed: PackedTokens,
        activation_index: Tensor | None,
        output_index: OutputIndex,
        x: Tensor,
        *weights: Tensor,
    ) -> Tensor:
        if activation_index is None:
            sizes = [backend.activation_layout.width] * len(backend.layers) + [x.shape[1]]
            records = [x.new_empty(len(x), size) for size in sizes]
            hidden = backend.forward(
                x, packed.position, TreeAttention(packed), records, output_index
            )
        else:
            records = backend.activation_cache.buffers
            came = records[-1][
                activation_index if output_index is None else activation_index[output_index]
            ]
            hidden = backend.layer_ops(x, packed.position).norm(came, backend.final_norm_weight)
        ctx.save_for_backward(*weights)
        ctx.rest = (
            backend,
            packed,
            activation_index,
            output_index,
            records,
            backend.activation_cache.weights_version,
        )
        return hidden

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, *grads: Tensor) -> tuple[Tensor | None, ...]:  # pyright: ignore
        _ = ctx.saved_tensors  # torch refuses if weights have changed since
        body, line, at, asked, records, stamp = ctx.rest
        if at is not None and body.records.weights_version is not stamp:
            raise RuntimeError("records that a gradient needs are gone: another engine has begun")
        count, tree = len(line.token), TreeAttention(line)
        lines = body.lines(records[-1], line.position)

        def of(number: int) -> Tensor:
            if at is None:
                return records[number]
            place = body.scratch.room("record", count, records[number].shape[1], records[number])
            return torch.index_select(records[number], 0, at, out=place)

        came = of(len(body.layers))
        came = came if asked is None else came[asked]
        slope = grads[0].contiguous()
        slope, final = lines.norm_backward(came, body.final, slope, torch.zeros_like(slope))
        found: list[Tensor] = [final]
        for number in reversed(range(len(body.layers))):
            layer = body.layers[number]
            last = number + 1 == len(body.layers)
            slope, own = lines.backward(layer, of(number), slope, tree, asked if last else None)
            found[:0] = [own[name] for name in layer.weights]
        return None, None, None, None, slope, *found
