"""Rows being sampled together: what rows of a group read stands once, what each said beside it."""

from collections.abc import Sequence
from math import inf

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor
from torch.nn.functional import pad

from grupo.kernels import kv_tensors
from grupo.kernels.kv_tensors import State
from grupo.kernels.packing.block_attention import How
from grupo.kernels.prefix_cache import NOWHERE, Memory


class Decoding:
    """One new token in every row: it sees the row's trunk, and what the row said until now."""

    def __init__(self, memory: Memory, room: int, device: torch.device) -> None:
        self.memory, self.room = memory, room  # `room`: tokens a row may say
        self.slots: list[Tensor] = []  # of each trunk
        # of each row: whose trunk it goes on from, and tokens it has said before this one
        self.trunk = self.said = torch.zeros(0, dtype=torch.long, device=device)
        self.trunks: dict[int, State] = {}
        self.own: dict[int, State] = {}
        self.masks: dict[float, Tensor | None] = {}  # of this step, by window
        self.kept = self.said.new_zeros(0, room)  # where what was worked out of a token is kept

    def attend(self, layer: int, q: Tensor, k: Tensor, v: Tensor, how: How) -> Tensor:
        """Outputs (1, R, H, d) of queries (1, H, R, d), and keys and values (1, K, R, d)."""
        q, k, v = (x[0].transpose(0, 1) for x in (q, k, v))
        q = q.unflatten(1, (k.shape[1], -1))  # (R, K, H/K, d)
        keys, values = self._say(layer, k, v)
        before, after = self._trunk(layer)
        scores = torch.cat([self._look(q, before), q @ keys.mT], -1).float() * how.scale
        if how.softcap:
            scores = torch.tanh(scores / how.softcap) * how.softcap
        if how.window not in self.masks:
            self.masks[how.window] = self._unseen(how.window)
        unseen = self.masks[how.window]
        if unseen is not None:
            scores = scores.masked_fill(unseen[:, None, None], -inf)
        p = scores.softmax(-1).to(v)
        far, near = p.split([before.shape[2], keys.shape[2]], -1)
        return (self._gather(far, after) + near @ values).flatten(1, 2)[None]

    def room_for(self, layer: int, k: Tensor, v: Tensor) -> tuple[State, State]:
        """What rows say, with room for tokens of this shape (R, K, d), and what trunks hold."""
        self._reserve(layer, k, v)
        return self.own[layer], self._trunk(layer)

    def note(self, first: int) -> None:
        """What was worked out of the rows' tokens is kept from there on."""
        rows = torch.arange(len(self.said), device=self.said.device)
        self.kept[rows, self.said] = rows + first

    @property
    def last(self) -> Int[Tensor, "R"]:
        """Where what was worked out of each row's newest token is kept, or NOWHERE."""
        return self.kept.gather(1, self.said[:, None])[:, 0]

    def step(self) -> None:
        """Every row has said one more."""
        # a row that is over says on until it leaves; it must not leave its cells
        self.said = (self.said + 1).clamp(max=self.room - 1)
        self.top = min(self.top + 1, self.room - 1)
        self.masks = {}

    def take(self, rows: Int[Tensor, "r"]) -> None:
        """Go on with some rows only."""
        self.trunk, self.said, self.kept = self.trunk[rows], self.said[rows], self.kept[rows]
        if not len(rows):
            self.slots, self.trunks, self.own = [], {}, {}
            return
        kept, self.trunk = self.trunk.unique(return_inverse=True)
        if len(kept) < len(self.slots):
            self.slots = [self.slots[i] for i in kept.tolist()]
            width = max(map(len, self.slots))
            self.trunks = kv_tensors.each(self.trunks, lambda x: x[kept, :, :width])
        self.own = kv_tensors.each(self.own, lambda x: x[rows])
        self._arrange()

    def add(self, slots: Sequence[Tensor], trunk: Int[Tensor, "n"]) -> None:
        """Let new rows join, which have said nothing yet; trunks as `prefill` gave them."""
        before, rows = len(self.slots), len(trunk)
        self.slots = [*self.slots, *slots]
        self.trunk = torch.cat([self.trunk, trunk + before])
        self.said = torch.cat([self.said, torch.zeros_like(trunk)])
        self.kept = pad(self.kept, (0, 0, 0, rows), value=NOWHERE)
        self.own = kv_tensors.each(
            self.own, lambda x: torch.cat([x, x.new_zeros(rows, *x.shape[1:])])
        )
        old, self.trunks = self.trunks, {}
        self._arrange()
        for layer, state in old.items():
            self.trunks[layer] = kv_tensors.joined(state, self._read(layer, self.slots[before:]))

    def remember(self, rows: Sequence[int], tokens: Sequence[Sequence[int]]) -> None:
        """Let the memory have what rows said, but for their last token, which was not read."""
        known, where = self.memory.size, []
        for row, said in zip(rows, tokens, strict=True):
            if self.memory.full:
                break
            path, before = self.slots[int(self.trunk[row])].tolist(), self.memory.size
            slots = self.memory.grow(path, said[:-1])
            where += [(row, i) for i, slot in enumerate(slots) if slot >= before]
        if where:
            new = range(known, self.memory.size)
            row, column = torch.tensor(where, device=self.said.device).T
            self.memory.note(new, self.kept[row, column].tolist())
            for layer, (k, v) in self.own.items():
                self.memory.write(
                    layer, slice(known, new.stop), k[row, :, column], v[row, :, column]
                )

    def _arrange(self) -> None:
        """Seat the rows by their trunks, so that a trunk is looked at by all its rows at once."""
        count = torch.bincount(self.trunk, minlength=len(self.slots))
        order = self.trunk.argsort(stable=True)
        seat = torch.empty_like(order)
        first = (count.cumsum(0) - count)[self.trunk[order]]
        seat[order] = torch.arange(len(order), device=order.device) - first
        self.seats, self.seat = int(count.max()), seat
        self.even = bool((count == self.seats).all() and (order[1:] > order[:-1]).all())
        self.length = torch.tensor([len(s) for s in self.slots], device=order.device)
        self.top = int(self.said.max())
        self.level = bool((self.said == self.top).all())
        self.ragged = bool((self.length != self.length.max()).any())
        self.masks = {}

    def _look(self, q: Tensor, keys: Tensor) -> Tensor:
        """Scores (R, K, H/K, P) of every row's trunk."""
        return self._ungrouped(self._grouped(q) @ keys.mT, q.shape[2])

    def _gather(self, p: Tensor, values: Tensor) -> Tensor:
        return self._ungrouped(self._grouped(p) @ values, p.shape[2])

    def _grouped(self, x: Float[Tensor, "R K h d"]) -> Float[Tensor, "G K s d"]:
        """What rows have, by trunk and key head: every seat times H/K."""
        if self.even:
            seated = x.unflatten(0, (-1, self.seats))
        else:
            seated = x.new_zeros((len(self.slots), self.seats, *x.shape[1:]))
            seated[self.trunk, self.seat] = x
        return seated.transpose(1, 2).flatten(2, 3)

    def _ungrouped(self, x: Float[Tensor, "G K s d"], heads: int) -> Float[Tensor, "R K h d"]:
        seated = x.unflatten(2, (self.seats, heads)).transpose(1, 2)
        return seated.flatten(0, 1) if self.even else seated[self.trunk, self.seat]

    def _trunk(self, layer: int) -> State:
        if layer not in self.trunks:
            self.trunks[layer] = self._read(layer, self.slots)
        return self.trunks[layer]

    def _read(self, layer: int, slots: Sequence[Tensor]) -> State:
        width = int(self.length.max())
        padded = torch.stack([pad(s, (0, width - len(s))) for s in slots])
        k, v = self.memory.read(layer, padded)
        return k.transpose(1, 2).contiguous(), v.transpose(1, 2).contiguous()

    def _say(self, layer: int, k: Tensor, v: Tensor) -> State:
        """Note the new token; keys and values of all that rows said."""
        self._reserve(layer, k, v)
        cells = self.top + 1
        for kept, new in zip(self.own[layer], (k, v), strict=True):
            if self.level:
                kept[:, :, self.top] = new
            else:
                kept[torch.arange(len(new), device=new.device), :, self.said] = new
        keys, values = self.own[layer]
        return keys[:, :, :cells], values[:, :, :cells]

    def _reserve(self, layer: int, k: Tensor, v: Tensor) -> None:
        if layer not in self.own:
            self.own[layer] = kv_tensors.blank(k), kv_tensors.blank(v)
        cells = self.top + 1
        if cells > self.own[layer][0].shape[2]:
            more = min(self.room, cells + max(32, cells // 2))
            k, v = self.own[layer]
            self.own[layer] = kv_tensors.wider(k, more), kv_tensors.wider(v, more)

    def _unseen(self, window: float) -> Bool[Tensor, "R c"] | None:
        """Cells of a row's trunk, then of its own, that hold nothing it sees; None: it sees all."""
        width, cells = int(self.length.max()), self.top + 1
        near = width + cells <= window
        if near and self.level and not self.ragged:
            return None
        trunk, own = (torch.arange(n, device=self.said.device) for n in (width, cells))
        length, said = self.length[self.trunk, None], self.said[:, None]
        position = torch.cat([trunk.expand(len(said), -1), own + length], 1)
        there = torch.cat([trunk < length, own <= said], 1)
        return ~there | (length + said - position >= window)
