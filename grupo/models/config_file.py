"""Checks of a model's name, config.json and adapters that transformers and peft leave out."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from grupo.core.limits import TOKENIZER_FILE, VOCABULARY, WIDTH
from grupo.core.sizes import describe_number
from grupo.models.model_folder import model_folder
from grupo.models.quantized_weights import check_quantized_weights
from grupo.util.errors import ConfigError
from grupo.util.json_text import check_depth, read_limited
from grupo.util.limits import LORA_RANK, MODEL_LAYERS, Limit
from grupo.util.regular_files import check_regular_file
from grupo.util.user_paths import parse_path

WIDTH_SUFFIXES = (
    *("_size", "_heads", "_dim", "_experts", "d_model", "n_embd", "n_inner", "n_head"),
    "num_labels",  # transformers makes a name for each
)


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
    """Raise `ConfigError` for a config.json that is no object, or of a model that cannot be loaded.

    It has too many layers or tokens, or its weights are quantized.

    Args:
        model: Folder, GGUF file or hub name; of a name on the hub only the name is checked.
    """
    check_model_name(model)
    path = Path(model_folder(model)) / "config.json"
    if not path.is_file():
        return
    _check_files(path.parent)
    try:
        config = json.loads(read_limited(path))  # some models' configurations hold Infinity
        check_depth(config)
    except (ValueError, RecursionError) as error:
        raise ConfigError(f"model: {path} is no valid JSON: {str(error).rstrip('.')}.") from error
    if not isinstance(config, dict):
        raise ConfigError(f"model: {path} is a JSON {type(config).__name__}. Allowed: an object.")
    _check_sizes(path, config)
    check_quantized_weights(f"model: {path}", config)


def _check_files(folder: Path) -> None:
    """Raise `ConfigError` for a pipe, a device or a file of the kernel in a model's folder."""
    for file in sorted(folder.iterdir()):
        if file.exists() and not file.is_dir():
            try:
                check_regular_file(file)
            except ConfigError as error:
                raise ConfigError(f"model: {error}") from error


def _check_sizes(path: Path, config: Mapping[str, Any]) -> None:
    """Raise `ConfigError` for a number of a configuration, or of one inside it, above its limit."""
    for name, value in config.items():
        if isinstance(value, Mapping):
            _check_sizes(path, value)
        limit = _limit_of(name)
        if limit and isinstance(value, int) and not isinstance(value, bool):
            smallest = 1 if name == "num_hidden_layers" else value
            if not smallest <= value <= limit.maximum:
                place = f"model: {path}: {name} = {describe_number(value)}"
                raise ConfigError(f"{place}. Allowed: 1 or more, {limit.allowed}.")


def _limit_of(name: str) -> Limit | None:
    """The limit of a number in config.json.

    >>> _limit_of("hidden_size").maximum, _limit_of("bos_token_id")
    (1000000, None)
    """
    if "layer" in name:
        return MODEL_LAYERS
    if name.endswith("vocab_size"):
        return VOCABULARY
    return WIDTH if name.endswith(WIDTH_SUFFIXES) else None


def check_tokenizer_file(model: str) -> None:
    """Raise `ConfigError` for a tokenizer.json that takes too much memory to read."""
    path = Path(model) / "tokenizer.json"
    if path.is_file() and path.stat().st_size > TOKENIZER_FILE.maximum:
        size = f"{path.stat().st_size:,} bytes"
        raise ConfigError(f"model: {path} has {size}. Allowed: {TOKENIZER_FILE.allowed}.")


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
