"""Checks of the numbers in the header of a GGUF file, which transformers takes as they are."""

import math
from collections.abc import Mapping

from grupo.models.gguf.header import GgufHeader, Setting
from grupo.util.errors import ConfigError
from grupo.util.limits import MODEL_LAYERS

ABOVE_ZERO = ("rope.freq_base", "attention.layer_norm_epsilon", "attention.layer_norm_rms_epsilon")
AT_LEAST = {
    "block_count": 1,
    "context_length": 1,
    "embedding_length": 1,
    "feed_forward_length": 0,
    "vocab_size": 1,
    "rope.dimension_count": 1,
    "attention.key_length": 1,
    "attention.value_length": 1,
}
HEADS = {"attention.head_count": 1, "attention.head_count_kv": 1}
WITHOUT_ATTENTION = ("mamba",)


def check_settings(header: GgufHeader) -> None:
    """Raise `ConfigError` for a number of the architecture that no model can have.

    transformers converts a NaN, an infinite or a negative number into a model whose answers are
    NaN, and divides by a number of heads that is 0.
    """
    prefix = f"{header.architecture}."
    has_attention = header.architecture not in WITHOUT_ATTENTION
    at_least = AT_LEAST | (HEADS if has_attention else {})
    for name, value in header.settings.items():
        if name.startswith(prefix):
            _check(name, name.removeprefix(prefix), value, at_least)


def _check(name: str, setting: str, value: Setting, at_least: Mapping[str, int]) -> None:
    allowed = ""
    if isinstance(value, float) and not math.isfinite(value):
        allowed = "a finite number"
    elif setting in ABOVE_ZERO and not (isinstance(value, float) and value > 0):
        allowed = "a floating-point number above 0"
    elif setting in at_least and not _is_whole(value, at_least[setting], math.inf):
        allowed = f"a whole number of {at_least[setting]} or more"
    elif "count" in setting and not _is_whole(value, 0, MODEL_LAYERS.maximum):
        allowed = f"0 to {MODEL_LAYERS.maximum:,}"
    if allowed:
        raise ConfigError(f"{name} = {value!r}. Allowed: {allowed}.")


def _is_whole(value: Setting, minimum: int, maximum: float) -> bool:
    return not isinstance(value, bool | float | str) and minimum <= value <= maximum
