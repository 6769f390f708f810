"""Checks of a model's name, config.json and adapters that transformers and peft leave out."""

import json
from pathlib import Path

from grupo.models.model_folder import model_folder
from grupo.util.errors import ConfigError
from grupo.util.json_text import check_depth, read_limited
from grupo.util.limits import LORA_RANK, MODEL_LAYERS
from grupo.util.user_paths import parse_path


def check_model_name(model: str) -> None:
    """Raise `ConfigError` for a text that no file system can hold, and the hub neither.

    >>> check_model_name(300 * "x")
    Traceback (most recent call last):
    grupo.util.errors.ConfigError: model: ...
    """
    try:
        parse_path(model)
    except ConfigError as error:
        allowed = "a model's folder, a .gguf file, or a name on the hub"
        raise ConfigError(f"model: {str(error).rstrip('.')}. Allowed: {allowed}.") from error


def check_config_file(model: str) -> None:
    """Raise `ConfigError` for a config.json that is no object or has too many layers.

    Args:
        model: Folder, GGUF file or hub name; of a name on the hub only the name is checked.
    """
    check_model_name(model)
    path = Path(model_folder(model)) / "config.json"
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


def reads_media(model: str) -> bool:
    """Whether the model in a folder reads images or audio beside text; none in a GGUF file does."""
    path = Path(model) / "config.json"
    if not path.is_file():
        return False
    check_config_file(model)
    config = json.loads(read_limited(path))
    return "text_config" in config and bool({"vision_config", "audio_config"} & set(config))


def check_rank(rank: int) -> None:
    """Raise `ConfigError` for adapters of a rank that no memory holds."""
    if rank > LORA_RANK.maximum:
        raise ConfigError(f"lora: rank: {rank}. Allowed: {LORA_RANK.allowed}.")
