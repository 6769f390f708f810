"""Readers of tables, which yield each row with its location for error messages."""

import os
import re
from collections.abc import Iterator, Mapping
from functools import partial
from itertools import islice
from pathlib import Path
from typing import Any, BinaryIO

from grupo.core.errors import ConfigError, suggest
from grupo.core.json_text import check_unicode, parse_json
from grupo.core.limits import FOLDER_FILES, TASK_LINE_SIZE, TASK_ROWS
from grupo.core.loader_errors import loader_errors

_SURROGATE_ESCAPE = re.compile(r"\\u[dD][89a-fA-F]")
# the location of a row, such as "rows.jsonl, line 3", and the row
LocatedRows = Iterator[tuple[str, Mapping[str, Any]]]


def read_jsonl(path: Path) -> LocatedRows:
    """One JSON object a line; empty lines are skipped."""
    with path.open("rb") as file:
        check_row_count(path, _count_lines(file))
        file.seek(0)
        for number, line in enumerate(iter(partial(file.readline, TASK_LINE_SIZE.maximum), b""), 1):
            if line.strip():
                location = f"{path}, line {number}"
                yield location, _parse_object(line, location)


def check_row_count(path: Path | str, count: int) -> None:
    """Raise `ConfigError` if a table has more rows than memory holds."""
    if count > TASK_ROWS.maximum:
        raise ConfigError(f"{path} has {count:,} rows. Allowed: {TASK_ROWS.allowed}.")


def _count_lines(file: BinaryIO) -> int:
    """The number of lines, counted in blocks: parsing as many rows would take minutes."""
    blocks = iter(partial(file.read, 2**20), b"")
    return sum(block.count(b"\n") for block in blocks)


def _parse_object(line: bytes, location: str) -> Mapping[str, Any]:
    if len(line) >= TASK_LINE_SIZE.maximum:
        raise ConfigError(f"{location} is too long. Allowed: {TASK_LINE_SIZE.allowed}.")
    try:
        text = line.decode("utf-8-sig")
        row = parse_json(text)
        if _SURROGATE_ESCAPE.search(text):
            check_unicode(row)
    except ValueError as error:
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
            check_row_count(path, file.metadata.num_rows)
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
    with loader_errors(path):
        dataset = _load_dataset(path, split, config)
    check_row_count(path, len(dataset))
    for index in range(len(dataset)):
        yield f"{path}, row {index + 1}", dataset[index]


def _load_dataset(path: str, split: str, config: str) -> Any:
    _check_folder_size(Path(path))
    import datasets  # imported on demand, because the import takes a second

    saved = any((Path(path) / name).is_file() for name in ("dataset_dict.json", "state.json"))
    try:
        if not saved:
            return datasets.load_dataset(path, config or None, split=split)
        dataset = datasets.load_from_disk(path)
    except Exception as error:  # builders of `datasets` raise errors of any type
        raise ConfigError(f"{path}: {_load_error(path, error)}") from error
    if isinstance(dataset, datasets.DatasetDict):
        return _select_split(dataset, split, path)
    return dataset


def _check_folder_size(folder: Path) -> None:
    files = (name for _, _, names in os.walk(folder) for name in names)
    if next(islice(files, FOLDER_FILES.maximum, None), None) is not None:
        raise ConfigError(f"{folder} is no folder of a data set. Allowed: {FOLDER_FILES.allowed}.")


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
