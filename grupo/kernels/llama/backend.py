"""A body of the family of Llama: it decodes in C, and need not read again what it has read."""

import ctypes
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import torch
from torch import Tensor, nn
from transformers import PreTrainedModel

from grupo.kernels.backend import Modules, Reading
from grupo.kernels.decode_state import Decoding
from grupo.kernels.llama.activation_cache import Columns, Records, Scratch
from grupo.kernels.llama.autograd import Again
from grupo.kernels.llama.decode_step import Ready, decode, ready
from grupo.kernels.llama.forward_backward import Asked, Lines
from grupo.kernels.llama.layers import layers_of, shape_of
from grupo.kernels.llama.logit_cache import Choosing, Heard
from grupo.kernels.lm_head import Head
from grupo.kernels.packing.block_attention import How
from grupo.kernels.packing.hf_attention import Sees
from grupo.kernels.packing.prefix_trie import Line
from grupo.kernels.packing.tree_attention import Tree
from grupo.kernels.prefix_cache import NOWHERE, ROOT, Memory


class Lean:
    """Works out what the model's modules do, of which `hows` says how they attend."""

    def __init__(self, model: PreTrainedModel, c: ctypes.CDLL, hows: dict[int, How]) -> None:
        self.model, self.c, self.modules = model, c, Modules(model)
        self.base: Any = model.base_model
        self.layers = layers_of(model, hows)
        self.final: Tensor = self.base.norm.weight
        self.weights = [w for layer in self.layers for w in layer.weights.values()] + [self.final]
        passed = [self.base, *self.base.layers.modules(), self.base.norm]
        self.hooks = [hooks for module in passed for hooks in _hooks(module)]
        self.saving = [m for m in passed if hasattr(m, "gradient_checkpointing")]
        self.shape = shape_of(self.base, self.layers)
        self.columns = Columns.of(self.shape)
        self.records = Records(len(self.layers), self.columns.width, len(self.final))
        self.scratch, self.memory = Scratch(), Memory(0)
        self.heard = Heard(c, self.shape, self.scratch, self.records.room)
        self.ready: Ready | None = None

    @property
    def bare(self) -> bool:
        """Is there nothing about the modules that would be passed by?"""
        saves = any(m.gradient_checkpointing for m in self.saving)
        return not (any(self.hooks) or saves or torch.is_autocast_enabled("cpu"))

    @property
    def stamp(self) -> object:
        """Of the weights as they are now; torch does not count what is done to their `.data`."""
        head: Any = self.model.get_output_embeddings()
        weights = *self.weights, self.embedding, *(head.parameters() if head else ())
        return [(w.data_ptr(), w._version) for w in weights]

    @property
    def embedding(self) -> Tensor:
        return self.base.embed_tokens.weight

    def begin(self, memory: Memory) -> None:
        self.memory, self.ready = memory, None
        self.memory.kept.clear()
        self.records.clear(self.stamp)
        self.heard.clear(self.stamp)

    def read(self, token: Tensor, position: Tensor, reading: Reading, last: Tensor) -> Tensor:
        if not self.bare:
            return self.modules.read(token, position, reading, last)
        x = self.base.embed_tokens(token)
        first, records = self._room(x)
        if first is not None:  # what nobody asks for has slopes of 0, and must be numbers
            records[-1].zero_()
            records[-2][:, self.columns.y.start :] = 0
        hidden = self.forward(x, position, reading, records, last)
        if first is not None:
            self.records.whole[first + last] = True
            reading.note(first)
        return hidden

    def go_on(self, token: Tensor, position: Tensor, decoding: Decoding) -> Tensor:
        if not self.bare:
            return self.modules.go_on(token, position, decoding)
        x = self.base.embed_tokens(token)
        first, records = self._room(x)
        lines = self.lines(x, position)
        self.ready = self.ready or ready(lines, self.layers)
        decode(lines, self.ready, x, decoding, records[: len(self.layers)])
        if first is not None:
            records[-1][:] = x
            self.records.whole[first : first + len(x)] = True
            decoding.note(first)
        return lines.norm(x, self.final)

    def again(self, line: Line, place: Tensor) -> tuple[Tensor, Tensor | None]:
        if not self.bare:
            return self.modules.again(line, place)
        x, (asked, back) = self.base.embed_tokens(line.token), _each_once(place, len(line.token))
        if not torch.is_grad_enabled():
            hidden = self.forward(x, line.position, Tree(line), self._scratch(x), asked)
            return hidden.index_select(0, back), None
        found = self._found(line, place)
        hidden: Any = Again.apply(self, line, found, asked, x, *self.weights)
        # the way back of hidden[back] adds in whatever order threads come
        hidden = hidden.index_select(0, back)
        return hidden, None if found is None else found[place]

    def say(self, head: Head, hidden: Tensor, record: Tensor) -> Tensor:
        weight = self._plain(head)
        return head(hidden) if weight is None else self.heard.say(weight, hidden, record)

    def chosen(self, head: Head, record: Tensor | None) -> Choosing | None:
        weight = self._plain(head)
        if weight is None:
            return None
        if self.heard.stamp != self.stamp:
            self.heard.clear(self.stamp)
        return Choosing(self.heard, weight, record)

    def forward(
        self, x: Tensor, position: Tensor, sees: Sees, records: Sequence[Tensor], asked: Asked
    ) -> Tensor:
        """Fill in records of every layer, and of what came out of the last, if asked; its norm."""
        lines = self.lines(x, position)
        for i, layer in enumerate(self.layers):
            last = i + 1 == len(self.layers)
            x = lines.forward(i, layer, records[i], x, sees, asked if last else None)
        if len(records) > len(self.layers):
            records[-1][slice(None) if asked is None else asked] = x
        return lines.norm(x, self.final)

    def lines(self, like: Tensor, position: Tensor) -> Lines:
        """Tokens at some positions."""
        cos, sin = self.base.rotary_emb(like, position[None])
        angles = cos[0].contiguous(), sin[0].contiguous()
        self.shape.threads = torch.get_num_threads()
        return Lines(self.c, self.shape, self.columns, self.scratch, *angles)

    def _plain(self, head: Head) -> Tensor | None:
        """The head's weights, if they are all that there is to it."""
        return head.weight if self.bare and not any(_hooks(head.output)) else None

    def _room(self, x: Tensor) -> tuple[int | None, tuple[Tensor, ...]]:
        """For records, and where they are kept; not at all if there is no room left."""
        return self.records.take(len(x), x) or (None, self._scratch(x))

    def _scratch(self, x: Tensor) -> tuple[Tensor, ...]:
        return (self.scratch.room("record", len(x), self.columns.width, x),) * len(self.layers)

    def _found(self, line: Line, place: Tensor) -> Tensor | None:
        """Where the records of the line's tokens are, if these weights have read them all, and
        those at some places to the end.
        """
        if not self.records.used or self.stamp != self.records.stamp:
            return None
        tokens, at, open_ = line.token.tolist(), list[int](), [(len(line.token), ROOT)]
        for stretch in line.stretches:
            while open_[-1][0] <= stretch.begin:  # nothing more goes on from it
                open_.pop()
            before = open_[-1][1]
            slots = self.memory.path(tokens[stretch.begin : stretch.end], before)
            at += [self.memory.kept.get(slot, NOWHERE) for slot in slots]
            if len(at) < stretch.end or NOWHERE in at[stretch.begin :]:
                return None
            open_.append((stretch.last, [before, *slots][-1]))
        found = torch.tensor(at, dtype=torch.long)
        return found if self.records.whole[found[place]].all() else None


def _each_once(place: Tensor, count: int) -> tuple[Asked, Tensor]:
    """The places of so many that are asked for, and where among them each is; None: all of them,
    for where it is most of them picking costs more.
    """
    asked, back = place.unique(return_inverse=True)
    return (asked, back) if len(asked) * 4 < count * 3 else (None, place)


def _hooks(module: nn.Module) -> Iterator[Mapping[int, Any]]:
    """Whoever wants to be called when it works, now or later."""
    yield from (module._forward_hooks, module._forward_pre_hooks)
    yield from (module._backward_hooks, module._backward_pre_hooks)
