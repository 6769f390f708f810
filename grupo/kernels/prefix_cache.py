"""What a model has read: keys and values of tokens, each token after the same others once."""

from collections.abc import Sequence

from torch import Tensor

ROOT = -1
NOT_CACHED = -1


class PrefixCache:
    """A slot for each token that was read, found by the slot before it; keys and values by layer.

    It holds about `cells` tokens: who is to remember more first forgets all.
    """

    def __init__(self, capacity: int) -> None:
        self.capacity = capacity
        self.clear()

    def clear(self) -> None:
        """Hold nothing."""
        self.children: dict[tuple[int, int], int] = {}
        self.layer_kv: dict[int, tuple[Tensor, Tensor]] = {}
        self.activation_index: dict[
            int, int
        ] = {}  # where what was worked out of a slot's token is kept

    def lookup(self, tokens: Sequence[int], slot: int = ROOT) -> list[int]:
        """The slots of the longest beginning that was read before, after what ends at `slot`."""
        slots = []
        for token in tokens:
            found = self.children.get((slot, token))
            if found is None:
                break
            slots.append(slot := found)
        return slots

    def insert(self, path: Sequence[int], tokens: Sequence[int]) -> list[int]:
        """Slots of the tokens that come after `path`, new ones where there are none."""
        slots, slot = [], path[-1] if path else ROOT
        for token in tokens:
            slots.append(slot := self.children.setdefault((slot, token), len(self.children)))
        return slots

    @property
    def size(self) -> int:
        """How many slots there are; the next one is called so."""
        return len(self.children)

    def write_kv(self, layer: int, slots: Tensor | slice, k: Tensor, v: Tensor) -> None:
        """Keep keys and values (m, K, d) of some slots."""
        self._reserve(layer, k, v)
        for kept, new in zip(self.layer_kv[layer], (k, v), strict=True):
            kept[slots] = new

    def read_kv(self, layer: int, slots: Tensor) -> tuple[Tensor, Tensor]:
        """Keys and values of some slots: their shape, then (K, d)."""
        k, v = self.layer_kv[layer]
        return k[slots], v[slots]

    def store_activation_index(self, slots: Sequence[int], indices: Sequence[int]) -> None:
        """What was worked out of some slots is kept there; -1: it is not kept."""
        self.activation_index.update((s, p) for s, p in zip(slots, indices, strict=True) if p >= 0)

    def _reserve(self, layer: int, k: Tensor, v: Tensor) -> None:
        wanted = len(self.children)
        old = self.layer_kv.get(layer, (k[:0], v[:0]))
        if wanted > len(old[0]):
            size = max(wanted, len(old[0]) * 2, 256)
            self.layer_kv[layer] = _resized(old[0], size), _resized(old[1], size)

    @property
    def is_full(self) -> bool:
        """Is it time to forget?"""
        return len(self.children) > self.capacity


def _resized(x: Tensor, size: int) -> Tensor:
    longer = x.new_empty((size, *x.shape[1:]))
    longer[: len(x)] = x
    return longer
