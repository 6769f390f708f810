"""Readers of tables, which yield each row with its location for error messages."""

import json
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from grupo.core.errors import ConfigError, suggest

# the location of a row, such as "rows.jsonl, line 3", and the row
LocatedRows = Iterator[tuple[str, Mapping[str, Any]]]


def read_jsonl(path: Path) -> LocatedRows:
    """One JSON object a line; empty lines are skipped."""
    with path.open("rb") as file:
        for number, line in enumerate(file, 1):
            if line.strip():
                location = f"{path}, line {number}"
                yield location, _parse_object(line, location)


def _parse_object(line: bytes, location: str) -> Mapping[str, Any]:
    try:
        row = json.loads(line.decode("utf-8-sig"))
    except (ValueError, RecursionError) as error:
        raise ConfigError(f"{location} is not JSON: {error}. The line is {line[:80]!r}.") from error
    if not isinstance(row, Mapping):
        raise ConfigError(f"{location} is a JSON {type(row).__name__}. Allowed: an object.")
    return row


def read_parquet(path: Path) -> LocatedRows:
    """The rows of a Parquet file, with one batch in memory at a time."""
    from pyarrow import ArrowException
    from pyarrow.parquet import ParquetFile

    try:
        with ParquetFile(path) as file:
            rows = (row for batch in file.iter_batches() for row in batch.to_pylist())
            for number, row in enumerate(rows, 1):
                yield f"{path}, row {number}", row
    except (ArrowException, OSError) as error:
        raise ConfigError(f"{path} is not readable as Parquet: {error}") from error


def is_hub_name(path: str) -> bool:
    """True if this may be the name of a data set on the hub, `owner/name` or `name`.

    >>> is_hub_name("openai/gsm8k"), is_hub_name("./rows"), is_hub_name("a/b/c")
    (True, False, False)
    """
    return re.fullmatch(r"\w[\w.-]*(/\w[\w.-]*)?", path) is not None


def read_dataset(path: str, split: str, config: str) -> LocatedRows:
    """The rows of a folder or hub data set, read by `datasets`."""
    dataset = _load_dataset(path, split, config)
    for index in range(len(dataset)):
        yield f"{path}, row {index + 1}", dataset[index]


def _load_dataset(path: str, split: str, config: str) -> Any:
    import datasets  # imported on demand, because the import takes a second

    saved = any((Path(path) / name).is_file() for name in ("dataset_dict.json", "state.json"))
    try:
        if not saved:
            return datasets.load_dataset(path, config or None, split=split)
        dataset = datasets.load_from_disk(path)
    except (ValueError, OSError, RuntimeError) as error:
        raise ConfigError(f"{path}: {_load_error(path, error)}") from error
    if isinstance(dataset, datasets.DatasetDict):
        return _select_split(dataset, split, path)
    return dataset


def _select_split(datasets_by_split: Mapping[Any, Any], split: str, path: str) -> Any:
    if split not in datasets_by_split:
        raise ConfigError(
            f"{path} has no split {split!r}. {suggest(split, map(str, datasets_by_split))}"
        )
    return datasets_by_split[split]


def _load_error(path: str, error: Exception) -> str:
    message = f"{type(error).__name__}: {error}"
    if Path(path).is_dir():
        return f"`datasets` cannot read this folder. {message}"
    return (
        "there is no such file or folder, and no data set of this name could be loaded from the "
        f"Hugging Face hub. {message}. Without a network only downloaded data sets can be read."
    )
