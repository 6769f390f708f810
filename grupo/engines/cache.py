"""What a model has read: keys and values that grow in place."""

from typing import Any

from torch import Tensor
from transformers import DynamicCache, PreTrainedConfig
from transformers.cache_utils import DynamicLayer


def growing(config: PreTrainedConfig) -> DynamicCache:
    """A cache for a model of `config`; layers that see a window only stay as transformers has them.

    They are short, and forget.
    """
    cache = DynamicCache(config=config)
    cache.layers = [Growing() if type(layer) is DynamicLayer else layer for layer in cache.layers]
    return cache


class Growing(DynamicLayer):
    """Keys and values with room behind them, so that a new token does not copy all old ones."""

    def update(
        self, key_states: Tensor, value_states: Tensor, *args: Any, **kwargs: Any
    ) -> tuple[Tensor, Tensor]:
        states = key_states, value_states
        before = self.get_seq_length()
        now = before + key_states.shape[-2]
        if before == 0:
            self.dtype, self.device, self.is_initialized = key_states.dtype, key_states.device, True
            self.buffers = _room(key_states, now), _room(value_states, now)
        elif now > self.buffers[0].shape[-2]:
            self.buffers = _room(self.buffers[0], now), _room(self.buffers[1], now)
        for buffer, new in zip(self.buffers, states, strict=True):
            buffer[..., before:now, :] = new
        return self._see(now)

    def batch_select_indices(self, indices: Tensor) -> None:
        self.buffers = self.buffers[0][indices], self.buffers[1][indices]
        self._see(self.get_seq_length())

    def _see(self, length: int) -> tuple[Tensor, Tensor]:
        self.keys, self.values = (buffer[..., :length, :] for buffer in self.buffers)
        return self.keys, self.values


def _room(states: Tensor, length: int) -> Tensor:
    """The same states at the beginning of something longer than `length`, by a quarter at least."""
    longer = states.new_empty((*states.shape[:-2], length + max(64, length // 4), states.shape[-1]))
    longer[..., : states.shape[-2], :] = states
    return longer
