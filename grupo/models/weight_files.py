"""Checks that the weights of a model are safetensors, because reading a pickle can execute code."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from transformers.utils.hub import cached_file
from transformers.utils.peft_utils import find_adapter_config_file

from grupo.models.model_references import check_pipeline_references
from grupo.util.errors import ConfigError

SAFETENSORS = (".safetensors", ".safetensors.index.json")
SAFE_WEIGHTS = ("model.safetensors", "model.safetensors.index.json")
SAFE_ADAPTERS = "adapter_model.safetensors"
PICKLES = ("pytorch_model.bin", "pytorch_model.bin.index.json")


def check_no_pickle(path: str, config: Any, model_class: type) -> None:
    """Raise `ConfigError` if transformers would read weights or adapters of a model from a pickle.

    `from_pretrained(use_safetensors=True)` does not suffice: adapters, the file that config.json
    names and the shards that an index names would still be read as pickles.

    Args:
        path: Folder or hub name of the model.
        config: Its configuration.
        model_class: The class of transformers that loads it.
    """
    for name in _pickles(path, config):
        convert = f'M.from_pretrained("{path}").save_pretrained("{_target(path)}")'
        raise ConfigError(
            f"{_problem(path, name)} Convert it once where that is harmless: python -c 'from"
            f" transformers import {model_class.__name__} as M; {convert}'. Or trust its author and"
            " write --policy.allow-pickle True."
        )


def check_pipeline(path: str) -> None:
    """Raise `ConfigError` if the folder of a pipeline names a pickle, or anything outside."""
    check_pipeline_references(path)
    for index in sorted(Path(path).rglob("*.safetensors.index.json")):
        for name in _pickled_shards(index):
            raise ConfigError(_problem(path, name))


def _pickles(path: str, config: Any) -> Iterator[str]:
    """The names of the pickles from which a model would be read."""
    named_file = str(getattr(config, "transformers_weights", None) or SAFE_WEIGHTS[0])
    if not named_file.endswith(SAFETENSORS):
        yield named_file
    if find_adapter_config_file(path) and not _find(path, SAFE_ADAPTERS):
        yield "adapter_model.bin"
    if index := _find(path, SAFE_WEIGHTS[1]):
        yield from _pickled_shards(Path(index))
    if not any(_find(path, name) for name in SAFE_WEIGHTS):
        yield from (name for name in PICKLES if _find(path, name))


def _pickled_shards(index: Path) -> Iterator[str]:
    """The files that an index of weights names and that are no safetensors files."""
    files = json.loads(index.read_text(encoding="utf-8"))["weight_map"].values()
    yield from (str(file) for file in files if not str(file).endswith(".safetensors"))


def _problem(path: str, name: str) -> str:
    return (
        f"model: {path!r} would be read from {name!r}, a pickle, which can execute code."
        " Allowed: safetensors."
    )


def _target(path: str) -> str:
    """The folder of the converted model: its own, or a new one for a model of a hub."""
    return path if Path(path).is_dir() else "FOLDER"


def _find(path: str, name: str) -> str | None:
    """The local path of a file of a model, downloaded from the hub if needed; None if missing."""
    return cached_file(
        path,
        name,
        _raise_exceptions_for_gated_repo=False,
        _raise_exceptions_for_missing_entries=False,
        _raise_exceptions_for_connection_errors=False,
    )
