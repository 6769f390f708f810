"""Features of media: what the tower of a multimodal model writes at their positions."""

from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor, nn
from transformers import PreTrainedModel

from grupo.kernels.llama.weights_version import WeightsVersion
from grupo.models.multimodal.processor import EncodedMedia, MediaProcessor, accepted_inputs
from grupo.util.device_copies import to_device

MAX_CACHED_BYTES = 1 << 30


@dataclass(frozen=True)
class Features:
    """Features of one image or audio with n positions.

    Args:
        values: written at its positions.
        deep: added to the hidden states of its positions in the first layers, a tensor for each.
        is_stacked: whether the model has the features of its pictures in one tensor (b, n, h).
    """

    values: Float[Tensor, "n h"]
    deep: tuple[Float[Tensor, "n h"], ...] = ()
    is_stacked: bool = False

    @property
    def num_bytes(self) -> int:
        """Memory of the tensors."""
        return sum(x.numel() * x.element_size() for x in (self.values, *self.deep))


class MediaFeatures:
    """Computes the features of media, and keeps them as long as their weights stay the same.

    Args:
        model: the model.
        processor: finds the tensors of media by their keys.
    """

    def __init__(self, model: PreTrainedModel, processor: MediaProcessor) -> None:
        self.model = model
        self.processor = processor
        self.cached: OrderedDict[tuple[int, torch.dtype], Features] = OrderedDict()
        self.num_bytes = 0
        self.version: WeightsVersion | None = None

    def with_model(self, model: PreTrainedModel) -> "MediaFeatures":
        """The features of a copy of the model."""
        return MediaFeatures(model, self.processor)

    @property
    def weights(self) -> list[nn.Parameter]:
        """Weights outside the language model: those that features depend on."""
        language = {id(p) for p in language_parameters(self.model)}
        return [p for p in self.model.parameters() if id(p) not in language]

    def __call__(self, keys: Sequence[int]) -> list[Features]:
        """Features of some contents; with gradients where the weights are trained."""
        trained = any(weight.requires_grad for weight in self.weights)
        if trained and torch.is_grad_enabled():
            computed = {key: self._compute(key) for key in dict.fromkeys(keys)}
            return [computed[key] for key in keys]
        if trained:
            self._drop_outdated()
        return [self._cached(key) for key in keys]

    def _drop_outdated(self) -> None:
        version = WeightsVersion.of(self.weights)
        if version != self.version:
            self.version = version
            self.cached.clear()
            self.num_bytes = 0

    def _cached(self, key: int) -> Features:
        device = self.model.device.type
        dtype = torch.get_autocast_dtype(device) if torch.is_autocast_enabled(device) else None
        entry = key, dtype or self.model.dtype
        if entry not in self.cached:
            with torch.no_grad():
                self.cached[entry] = self._compute(key)
            self.num_bytes += self.cached[entry].num_bytes
            while self.num_bytes > MAX_CACHED_BYTES and len(self.cached) > 1:
                self.num_bytes -= self.cached.popitem(last=False)[1].num_bytes
        self.cached.move_to_end(entry)
        return self.cached[entry]

    def _compute(self, key: int) -> Features:
        """Features of one content, alone: those of a batch could differ in their last bits."""
        encoded = self.processor.encode(key)
        device = self.model.device
        inputs = {name: to_device(x, device) for name, x in encoded.inputs.items()}
        return _tower_output(self.model, replace(encoded, inputs=inputs))


def language_parameters(model: PreTrainedModel) -> list[nn.Parameter]:
    """Parameters of the language model within a multimodal model, its head included."""
    head: Any = model.get_output_embeddings()
    modules = (model.get_decoder(), *([head] if head else []))
    return list({id(p): p for module in modules for p in module.parameters()}.values())


def _tower_output(model: PreTrainedModel, encoded: EncodedMedia) -> Features:
    base: Any = model.base_model
    function = getattr(base, f"get_{encoded.kind}_features", None)
    if function is None:
        return _features_before_decoder(model, encoded)
    output = function(**accepted_inputs(function, encoded.inputs), return_dict=True)
    deep = getattr(output, "deepstack_features", None) or ()
    values = output.pooler_output
    return Features(_joined(values), tuple(map(_joined, deep)), isinstance(values, Tensor))


def _joined(parts: Tensor | Sequence[Tensor]) -> Tensor:
    """Features of all parts of one content, such as the tiles of an image: (n, h)."""
    tensors = [parts] if isinstance(parts, Tensor) else parts
    return torch.cat([x.reshape(-1, x.shape[-1]) for x in tensors])


class _Reached(Exception):
    """The decoder would be called next."""


def _features_before_decoder(model: PreTrainedModel, encoded: EncodedMedia) -> Features:
    """Features of a model that computes them within its forward pass.

    The forward pass is stopped where it calls its decoder, whose embeddings are then the features.
    """
    found: list[Tensor] = []

    def stop(module: nn.Module, args: Any, kwargs: dict[str, Any]) -> None:
        found.append(kwargs["inputs_embeds"][0])
        raise _Reached

    base: Any = model.base_model
    token = torch.full((1, encoded.num_tokens), encoded.token_id, device=model.device)
    hook = model.get_decoder().register_forward_pre_hook(stop, with_kwargs=True)
    try:
        base(input_ids=token, attention_mask=torch.ones_like(token), **encoded.inputs)
    except _Reached:
        pass
    finally:
        hook.remove()
    return Features(found[0])
