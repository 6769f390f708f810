"""Checks of a model's config.json and adapters that transformers and peft leave out."""

import json
from pathlib import Path

from grupo.core.errors import ConfigError
from grupo.core.json_text import check_depth, read_limited
from grupo.core.limits import LORA_RANK, MODEL_LAYERS


def check_config_file(model: str) -> None:
    """Raise `ConfigError` for a config.json that is no object or has too many layers.

    Args:
        model: Folder or hub name of the model; a name on the hub is not checked.
    """
    path = Path(model) / "config.json"
    if not path.is_file():
        return
    try:
        config = json.loads(read_limited(path))  # some models' configurations hold Infinity
        check_depth(config)
    except (ValueError, RecursionError) as error:
        raise ConfigError(f"model: {path} is no valid JSON: {error}.") from error
    if not isinstance(config, dict):
        raise ConfigError(f"model: {path} is a JSON {type(config).__name__}. Allowed: an object.")
    for name, value in config.items():
        smallest = 1 if name == "num_hidden_layers" else value
        is_count = "layer" in name and isinstance(value, int)
        if is_count and not smallest <= value <= MODEL_LAYERS.maximum:
            allowed = f"1 or more, {MODEL_LAYERS.allowed}"
            raise ConfigError(f"model: {path}: {name} = {value}. Allowed: {allowed}.")


def check_rank(rank: int) -> None:
    """Raise `ConfigError` for adapters of a rank that no memory holds."""
    if rank > LORA_RANK.maximum:
        raise ConfigError(f"lora: rank: {rank}. Allowed: {LORA_RANK.allowed}.")
