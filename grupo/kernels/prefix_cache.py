"""Cache of keys and values, indexed by a trie of token prefixes."""

from collections.abc import Iterable, Sequence

from torch import Tensor

ROOT = -1
NOT_CACHED = -1
MAX_FILL = 2  # times its capacity: a cache of more tokens must be cleared
ROUTES_LAYER = -1  # holds the experts that routers chose, in place of keys


class PrefixCache:
    """Keys and values of tokens; a prefix that several prompts share is stored once.

    Each cached token has a slot, found by its predecessor's slot and the token itself.

    Args:
        capacity: number of tokens above which the cache is full. Before its next call, the engine
            clears a full cache, unless the call reads half of it. It always clears a cache of more
            than `MAX_FILL` times its capacity. Within a call, the cache may exceed these limits.
    """

    def __init__(self, capacity: int) -> None:
        self.capacity = capacity
        self.clear()

    def clear(self) -> None:
        """Removes all tokens."""
        self.children: dict[tuple[int, int], int] = {}
        self.layer_kv: dict[int, tuple[Tensor, Tensor]] = {}
        # row of the activation cache, by slot
        self.activation_index: dict[int, int] = {}

    def lookup(self, tokens: Sequence[int], slot: int = ROOT) -> list[int]:
        """Slots of the longest cached prefix of `tokens`, which follow the token at `slot`."""
        slots: list[int] = []
        for token in tokens:
            child = self.children.get((slot, token))
            if child is None:
                break
            slots.append(child)
            slot = child
        return slots

    def insert(self, path: Sequence[int], tokens: Sequence[int]) -> list[int]:
        """Slots of the tokens that follow the slots of `path`; creates those that are missing."""
        slots: list[int] = []
        slot = path[-1] if path else ROOT
        for token in tokens:
            slot = self.children.setdefault((slot, token), len(self.children))
            slots.append(slot)
        return slots

    @property
    def size(self) -> int:
        """Number of slots, and the next slot to be created."""
        return len(self.children)

    def write_kv(self, layer: int, slots: Tensor | slice, k: Tensor, v: Tensor) -> None:
        """Stores keys and values (m, K, d) of one layer."""
        self._reserve(layer, k, v)
        for buffer, new in zip(self.layer_kv[layer], (k, v), strict=True):
            buffer[slots] = new

    def read_kv(self, layer: int, slots: Tensor) -> tuple[Tensor, Tensor]:
        """Keys and values (*slots.shape, K, d) of one layer."""
        k, v = self.layer_kv[layer]
        return k[slots], v[slots]

    def write_routes(self, slots: Tensor, routes: Tensor) -> None:
        """Stores the experts (m, 1, layers*k) that the routers of all layers chose."""
        self.write_kv(ROUTES_LAYER, slots, routes, routes[..., :0])

    def read_routes(self, slots: Tensor) -> Tensor:
        """The experts (m, 1, layers*k) that the routers of all layers chose."""
        return self.read_kv(ROUTES_LAYER, slots)[0]

    def store_activation_index(self, slots: Sequence[int], indices: Sequence[int]) -> None:
        """Records the row of each slot in the activation cache; negative rows are skipped."""
        self.activation_index.update((s, p) for s, p in zip(slots, indices, strict=True) if p >= 0)

    def _reserve(self, layer: int, k: Tensor, v: Tensor) -> None:
        wanted = len(self.children)
        old = self.layer_kv.get(layer, (k[:0], v[:0]))
        if wanted > len(old[0]):
            size = max(wanted, len(old[0]) * 2, 256)
            self.layer_kv[layer] = _resized(old[0], size), _resized(old[1], size)

    @property
    def is_full(self) -> bool:
        """Whether more tokens are cached than the capacity."""
        return len(self.children) > self.capacity

    @property
    def must_be_cleared(self) -> bool:
        """Whether more tokens are cached than `MAX_FILL` times the capacity."""
        return len(self.children) > MAX_FILL * self.capacity

    def is_half_read(self, prompts: Iterable[Sequence[int]]) -> bool:
        """Whether at least half of the cached tokens are in the prompts."""
        read = {slot for prompt in prompts for slot in self.lookup(prompt)}
        return 2 * len(read) >= len(self.children)


def _resized(x: Tensor, size: int) -> Tensor:
    longer = x.new_empty((size, *x.shape[1:]))
    longer[: len(x)] = x
    return longer
