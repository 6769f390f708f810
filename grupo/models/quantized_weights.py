"""Quantized weights that config.json of a model announces: none can be trained as they are."""

from collections.abc import Iterator, Mapping
from typing import Any

from grupo.util.errors import ConfigError

FIELDS = ("quantization_config", "compression_config")  # as transformers and as vLLM write them
METHOD = "quant_method"
UNPACKED = ("mxfp4", "fp8")  # transformers makes ordinary weights of these, if `dequantize` is true
MAX_CHARS = 100  # of a value in a message
ALLOWED = (
    "weights of 16 or 32 bits, and a config.json without this field. Name the model that was not"
    " quantized; --policy.quantization 'Nf4()' with --policy.lora 'Lora(16)' quantizes its weights"
    f' to 4 bits while they are loaded. With "dequantize": true in this field, weights in'
    f" {' or '.join(UNPACKED)} are loaded in full precision"
)


def check_quantized_weights(place: str, config: Mapping[str, Any]) -> None:
    """Raise `ConfigError` if the weights of a model are quantized when they are loaded.

    Their forward pass needs other libraries or a GPU, and no gradient reaches them.

    Args:
        place: Names the configuration in messages, such as "model: /models/a/config.json".
        config: The configuration as JSON data.

    >>> check_quantized_weights("model: m", {"quantization_config": {"quant_method": "awq"}})
    Traceback (most recent call last):
    grupo.util.errors.ConfigError: model: m: quantization_config: quant_method = 'awq'. Allowed: ...
    """
    for field, settings in _quantization_settings(config, ""):
        if not _is_unpacked(settings):
            raise ConfigError(f"{place}: {field}: {_describe(settings)}. Allowed: {ALLOWED}.")


def is_dequantized(config: Mapping[str, Any]) -> bool:
    """Whether transformers makes ordinary weights of the model's quantized ones.

    Args:
        config: The configuration as JSON data, which `check_quantized_weights` accepted.

    >>> is_dequantized({"quantization_config": {"quant_method": "fp8", "dequantize": True}})
    True
    """
    return any(True for _ in _quantization_settings(config, ""))


def _quantization_settings(config: Mapping[str, Any], prefix: str) -> Iterator[tuple[str, Any]]:
    """The settings of quantization in a configuration and in those within it, by dotted name."""
    for name, value in config.items():
        if name in FIELDS and value is not None:
            yield f"{prefix}{name}", value
        elif isinstance(value, Mapping):
            yield from _quantization_settings(value, f"{prefix}{name}.")


def _is_unpacked(settings: Any) -> bool:
    """Whether transformers makes ordinary weights of quantized ones while it loads them."""
    if not isinstance(settings, Mapping):
        return False
    return settings.get(METHOD) in UNPACKED and settings.get("dequantize") is True


def _describe(settings: Any) -> str:
    """The values that say which quantization it is."""
    if not isinstance(settings, Mapping):
        return repr(settings)[:MAX_CHARS]
    names = (METHOD, *(n for n in ("load_in_8bit", "load_in_4bit", "bits") if settings.get(n)))
    return ", ".join(f"{name} = {settings.get(name)!r}"[:MAX_CHARS] for name in names)
