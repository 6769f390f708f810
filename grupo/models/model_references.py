"""References in the files of a model to other files, models and code: none of them is followed."""

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from transformers.utils.hub import cached_file

from grupo.util.errors import ConfigError
from grupo.util.file_names import stays_inside
from grupo.util.json_text import object_of_file

INDEX_FILES = ("model.safetensors.index.json", "pytorch_model.bin.index.json")
# names of kernels and models on the hub, which transformers would download
HUB_FIELDS = (
    "attn_implementation", "_attn_implementation", "experts_implementation",
    "_experts_implementation", "backbone",
)  # fmt: skip
TOKENIZER_FIELDS = ("tokenizer_file", "vocab_file", "merges_file", "spm_file", "sp_model_file")
PROCESSOR_FILES = ("processor_config.json", "preprocessor_config.json")
AUDIO_TOKENIZER = "audio_tokenizer"  # the field, and the beginning of the file's name
LIBRARIES = ("diffusers", "transformers")  # of the parts of a pipeline


def check_references(path: str) -> None:
    """Raise `ConfigError` if a file of a model refers to something outside of it.

    Args:
        path: Folder or hub name of the model.
    """
    for file, reference in _references(path):
        raise ConfigError(
            f"model: {path!r}: {file} refers to {str(reference)[:200]!r}, outside of the model."
            " Allowed: a model whose files name only each other."
        )


def check_pipeline_references(path: str) -> None:
    """Raise `ConfigError` if a part of a pipeline of diffusers is outside of it.

    Args:
        path: Folder of the pipeline.
    """
    index = object_of_file(Path(path) / "model_index.json")
    parts = {name: part for name, part in index.items() if isinstance(part, list)}
    for name, part in parts.items():
        if part[:1] and part[0] is not None and part[0] not in LIBRARIES:
            raise ConfigError(
                f"model: {path!r}: model_index.json takes {name!r} from the module"
                f" {str(part[0])[:200]!r}. Allowed: {' and '.join(LIBRARIES)}."
            )
    for name in parts:
        if not stays_inside(name):
            raise ConfigError(f"model: {path!r}: model_index.json has a part {name[:200]!r}.")
        if (Path(path) / name).is_dir():
            check_references(str(Path(path) / name))
    for file in sorted(Path(path).rglob("*.safetensors.index.json")):
        for reference in _outside_shards(object_of_file(file)):
            raise ConfigError(
                f"model: {path!r}: {file.name} refers to {str(reference)[:200]!r}, outside of the"
                " model. Allowed: a model whose files name only each other."
            )


def _references(path: str) -> Iterator[tuple[str, Any]]:
    """The files of a model that refer to something outside, and to what."""
    for name in INDEX_FILES:
        yield from ((name, reference) for reference in _outside_shards(_settings(path, name)))
    config = _settings(path, "config.json")
    yield from (("config.json", reference) for reference in _hub_names(config))
    weights = config.get("transformers_weights")
    if weights and not stays_inside(weights):
        yield "config.json", weights
    tokenizer = _settings(path, "tokenizer_config.json")
    for field in TOKENIZER_FIELDS:  # most are remains of another machine, where no file is today
        file = tokenizer.get(field)
        if isinstance(file, str) and not stays_inside(file) and Path(file).exists():
            yield "tokenizer_config.json", file
    for name in PROCESSOR_FILES:
        if reference := _settings(path, name).get(AUDIO_TOKENIZER):
            yield name, reference
    if reference := _settings(path, f"{AUDIO_TOKENIZER}_config.json"):
        yield f"{AUDIO_TOKENIZER}_config.json", reference
    if not Path(path).is_dir() and (adapter := _settings(path, "adapter_config.json")):
        yield "adapter_config.json", adapter.get("base_model_name_or_path")


def _outside_shards(index: Mapping[str, Any]) -> Iterator[Any]:
    """The files that an index of weights names and that are outside of the model."""
    shards = index.get("weight_map")
    names = shards.values() if isinstance(shards, dict) else ()
    yield from (name for name in names if not stays_inside(name))


def _hub_names(config: Any) -> Iterator[str]:
    """The names on the hub in a configuration, and in those within it."""
    for name, value in config.items() if isinstance(config, dict) else ():
        if name in HUB_FIELDS:
            values = value.values() if isinstance(value, dict) else (value,)
            yield from (x for x in values if isinstance(x, str) and "/" in x)
        yield from _hub_names(value)


def _settings(path: str, name: str) -> Mapping[str, Any]:
    """The fields of a JSON file of a model; none if it is missing."""
    file = cached_file(
        path,
        name,
        _raise_exceptions_for_gated_repo=False,
        _raise_exceptions_for_missing_entries=False,
        _raise_exceptions_for_connection_errors=False,
    )
    return object_of_file(Path(file)) if file else {}
