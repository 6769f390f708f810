"""State of continuations that are decoded in lock step and share one cache of keys and values."""

from math import inf

import torch
from jaxtyping import Bool, Int
from torch import Tensor

from grupo.kernels.kv_tensors import LayerKV
from grupo.kernels.log_softmax import at_least_float32
from grupo.kernels.packing.block_attention import AttentionConfig
from grupo.kernels.packing.sinks import Sinks, softmax_with_sinks
from grupo.kernels.prefix_cache import PrefixCache


class SharedDecodeState:
    """Attention of the newest token of each continuation to all earlier tokens, and to itself.

    The cache has the prompt's tokens first, and then those of each step, one of each continuation.

    Args:
        prefix_cache: Holds the keys and values of the prompt.
        slots: Slots of the prompt's tokens in it.
        capacity: The most tokens that follow the prompt.
    """

    def __init__(self, prefix_cache: PrefixCache, slots: Int[Tensor, "P"], capacity: int) -> None:
        self.prefix_cache = prefix_cache
        self.slots = slots
        self.key_position = torch.arange(len(slots) + capacity, device=slots.device)
        self.num_cached = len(slots)  # before the newest tokens
        self.num_tokens = len(slots)  # with them
        self.layer_kv: dict[int, LayerKV] = {}  # keys and values (K, capacity, d)
        # added to the values (K, P, d) of the prompt, by layer
        self.value_offsets: dict[int, Tensor] = {}

    def append(self, position: Int[Tensor, "R"]) -> None:
        """Begins a step: its tokens have these positions. They may be evaluated several times."""
        self.num_cached = self.num_tokens
        self.num_tokens += len(position)
        self.key_position[self.num_cached : self.num_tokens] = position

    def prompt_values(self, layer: int) -> Tensor:
        """The values (K, P, d) of the prompt in one layer, without an offset."""
        return self.prefix_cache.read_kv(layer, self.slots)[1].transpose(0, 1)

    def attend(
        self,
        layer: int,
        q: Tensor,
        k: Tensor,
        v: Tensor,
        config: AttentionConfig,
        sinks: Sinks | None = None,
    ) -> Tensor:
        """Outputs (1, R, H, d) of queries (1, H, R, d), keys and values (1, K, R, d)."""
        q, k, v = q[0], k[0], v[0]
        keys, values = self._cached_kv(layer, k, v)
        q = q.unflatten(0, (len(k), -1))  # (K, H/K, R, d)
        to_itself = (q * k[:, None]).sum(-1, keepdim=True)
        scores = torch.cat([q @ keys[:, None].mT, to_itself], -1)
        scores = at_least_float32(scores) * config.scale
        if config.softcap:
            scores = torch.tanh(scores / config.softcap) * config.softcap
        if config.window < inf:
            scores = scores.masked_fill(self._beyond(config.window), -inf)
        p = softmax_with_sinks(scores.permute(2, 0, 1, 3), sinks).permute(1, 2, 0, 3).to(v)
        out = p[..., :-1] @ values[:, None] + p[..., -1:] * v[:, None]
        return out.flatten(0, 1).transpose(0, 1)[None]

    def _cached_kv(self, layer: int, k: Tensor, v: Tensor) -> LayerKV:
        """Stores the newest tokens; returns keys and values (K, c, d) of those before them."""
        if layer not in self.layer_kv:
            prompt_k, prompt_v = self.prefix_cache.read_kv(layer, self.slots)
            self.layer_kv[layer] = self._buffer(prompt_k, k), self._buffer(prompt_v, v)
        for buffer, new in zip(self.layer_kv[layer], (k, v), strict=True):
            buffer[:, self.num_cached : self.num_tokens] = new.detach()
        keys, values = (buffer[:, : self.num_cached] for buffer in self.layer_kv[layer])
        if layer in self.value_offsets:
            prompt, rest = values.tensor_split([len(self.slots)], 1)
            values = torch.cat([prompt + self.value_offsets[layer].to(values), rest], 1)
        return keys, values

    def _buffer(self, prompt: Tensor, new: Tensor) -> Tensor:
        """A buffer (K, capacity, d) that begins with the prompt's keys or values (P, K, d)."""
        buffer = new.new_zeros(new.shape[0], len(self.key_position), new.shape[2])
        buffer[:, : len(self.slots)] = prompt.transpose(0, 1)
        return buffer

    def _beyond(self, window: float) -> Bool[Tensor, "R c+1"]:
        """Cached tokens that are too far before a newest token; it always sees itself."""
        position = self.key_position[self.num_cached : self.num_tokens, None]
        beyond = position - self.key_position[: self.num_cached] >= window
        return torch.nn.functional.pad(beyond, (0, 1))
