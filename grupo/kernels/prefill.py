"""Reading prompts: what was read before is not read again, what they share is read once."""

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from jaxtyping import Float
from torch import Tensor

from grupo.kernels.backend import Body
from grupo.kernels.packing import native_attention
from grupo.kernels.packing.block_attention import How, Part, kernel_for
from grupo.kernels.packing.prefix_trie import Line, Stretch, line
from grupo.kernels.packing.tree_attention import Tree, forward
from grupo.kernels.prefix_cache import Memory

Prompt = tuple[int, ...]


@dataclass(frozen=True)
class Past:
    """Slots that a piece of the line comes after."""

    asked: slice
    slots: Tensor


@dataclass(frozen=True)
class Reading:
    """A line of new tokens, after what is remembered; its keys and values are remembered too."""

    tree: Tree
    memory: Memory
    slots: Tensor  # of the line's tokens
    past: tuple[Past, ...]

    def attend(self, layer: int, q: Tensor, k: Tensor, v: Tensor, how: How) -> Tensor:
        q, k, v = (x[0].transpose(0, 1) for x in (q, k, v))
        return self.see(layer, q, k, v, how)[0][None]

    def see(self, layer: int, q: Tensor, k: Tensor, v: Tensor, how: How) -> tuple[Tensor, Tensor]:
        """Outputs (M, H, d) and log-normalisers (M, H) of queries, keys and values (M, ..., d)."""
        self.memory.write(layer, self.slots, k, v)
        if c := native_attention.whole(how, q, k, v):
            past = self._past(layer) if self.past else None
            return native_attention.see(c, self.tree.line, (q, k, v), how, past)
        parts = [(asked, part) for asked, _, part in self.tree.parts(q, k, v, how)]
        parts += [(past.asked, self._remembered(past, layer, q, how)) for past in self.past]
        return forward(kernel_for(how, q, v), self.tree.own, parts, (q, k, v), how)

    def note(self, first: int) -> None:
        """What was worked out of the line's tokens is kept from there on."""
        self.memory.note(self.slots.tolist(), range(first, first + len(self.slots)))

    def _past(self, layer: int) -> native_attention.Past:
        count = torch.tensor([len(past.slots) for past in self.past])
        asked = torch.tensor([(past.asked.start, past.asked.stop) for past in self.past])
        where = torch.cat([asked, (count.cumsum(0) - count)[:, None], count[:, None]], 1)
        slots = torch.cat([past.slots for past in self.past])
        return native_attention.Past(where, *self.memory.read(layer, slots))

    def _remembered(self, past: Past, layer: int, q: Tensor, how: How) -> Part:
        position = torch.arange(len(past.slots), device=q.device)
        near = position if self.tree.longest > how.window else None
        k, v = self.memory.read(layer, past.slots)
        return self.tree.part(past.asked, q, k, v, near, how)


def prefill(
    body: Body, memory: Memory, prompts: Sequence[Prompt]
) -> tuple[Float[Tensor, "P H"], list[Tensor]]:
    """The last hidden state of each prompt, and the slots of its tokens."""
    known = {p: memory.path(p[:-1]) for p in dict.fromkeys(prompts)}
    starts: dict[tuple[int, ...], list[Prompt]] = {}
    for prompt, path in known.items():
        starts.setdefault(tuple(path), []).append(prompt)
    laid = _laid(starts)
    slots = {p: [*path, *memory.grow(path, p[len(path) :])] for p, path in known.items()}
    device = body.model.device
    where = torch.zeros(len(laid.line.token), dtype=torch.long)
    for prompt, place in laid.place.items():
        where[place] = torch.tensor(slots[prompt][-len(place) :])
    past = tuple(Past(x.asked, x.slots.to(device)) for x in laid.past)
    on = laid.line.to(device)
    reading = Reading(Tree(on), memory, where.to(device), past)
    last = torch.tensor([int(laid.place[p][-1]) for p in prompts], device=device)
    hidden = body.read(on.token, on.position, reading, last)
    return hidden, [torch.tensor(slots[p], device=device) for p in prompts]


@dataclass(frozen=True)
class _Laid:
    line: Line
    place: dict[Prompt, Tensor]  # where in the line each prompt's new tokens are
    past: tuple[Past, ...]


def _laid(starts: dict[tuple[int, ...], list[Prompt]]) -> _Laid:
    """Everything new, as one line: piece by piece of what comes after the same slots."""
    pieces, place, past, size = [], {}, [], 0
    for slots, prompts in starts.items():
        piece = _line([p[len(slots) :] for p in prompts], len(slots))
        for i, prompt in enumerate(prompts):
            place[prompt] = piece.place[i, : len(prompt) - len(slots)] + size
        after = size + len(piece.token)
        past += [Past(slice(size, after), torch.tensor(slots))] if slots else []
        pieces.append((piece, size))
        size = after
    token, position = (
        torch.cat([getattr(p, name) for p, _ in pieces]) for name in ("token", "position")
    )
    stretches = [
        Stretch(s.begin + by, s.end + by, s.last + by) for p, by in pieces for s in p.stretches
    ]
    blank = torch.zeros(0, 0, dtype=torch.long)
    return _Laid(Line(token, position, blank, tuple(stretches)), place, tuple(past))


def _line(rows: Sequence[Prompt], offset: int) -> Line:
    length = torch.tensor([len(row) for row in rows])
    width = int(length.max())
    return line(torch.tensor([[*r, *[0] * (width - len(r))] for r in rows]), length, offset)
