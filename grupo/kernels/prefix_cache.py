"""What a model has read: keys and values of tokens, each token after the same others once."""

from collections.abc import Sequence

from torch import Tensor

ROOT = -1
NOWHERE = -1


class Memory:
    """A slot for each token that was read, found by the slot before it; keys and values by layer.

    It holds about `cells` tokens: who is to remember more first forgets all.
    """

    def __init__(self, cells: int) -> None:
        self.cells = cells
        self.forget()

    def forget(self) -> None:
        """Hold nothing."""
        self.after: dict[tuple[int, int], int] = {}
        self.layers: dict[int, tuple[Tensor, Tensor]] = {}
        self.kept: dict[int, int] = {}  # where what was worked out of a slot's token is kept

    def path(self, tokens: Sequence[int], slot: int = ROOT) -> list[int]:
        """The slots of the longest beginning that was read before, after what ends at `slot`."""
        slots = []
        for token in tokens:
            found = self.after.get((slot, token))
            if found is None:
                break
            slots.append(slot := found)
        return slots

    def grow(self, path: Sequence[int], tokens: Sequence[int]) -> list[int]:
        """Slots of the tokens that come after `path`, new ones where there are none."""
        slots, slot = [], path[-1] if path else ROOT
        for token in tokens:
            slots.append(slot := self.after.setdefault((slot, token), len(self.after)))
        return slots

    @property
    def size(self) -> int:
        """How many slots there are; the next one is called so."""
        return len(self.after)

    def write(self, layer: int, slots: Tensor | slice, k: Tensor, v: Tensor) -> None:
        """Keep keys and values (m, K, d) of some slots."""
        self._reserve(layer, k, v)
        for kept, new in zip(self.layers[layer], (k, v), strict=True):
            kept[slots] = new

    def read(self, layer: int, slots: Tensor) -> tuple[Tensor, Tensor]:
        """Keys and values of some slots: their shape, then (K, d)."""
        k, v = self.layers[layer]
        return k[slots], v[slots]

    def note(self, slots: Sequence[int], places: Sequence[int]) -> None:
        """What was worked out of some slots is kept there; -1: it is not kept."""
        self.kept.update((s, p) for s, p in zip(slots, places, strict=True) if p >= 0)

    def _reserve(self, layer: int, k: Tensor, v: Tensor) -> None:
        wanted = len(self.after)
        old = self.layers.get(layer, (k[:0], v[:0]))
        if wanted > len(old[0]):
            size = max(wanted, len(old[0]) * 2, 256)
            self.layers[layer] = _longer(old[0], size), _longer(old[1], size)

    @property
    def full(self) -> bool:
        """Is it time to forget?"""
        return len(self.after) > self.cells


def _longer(x: Tensor, size: int) -> Tensor:
    longer = x.new_empty((size, *x.shape[1:]))
    longer[: len(x)] = x
    return longer
