"""Folders and hub data sets, read by `datasets`, which maps their files into memory."""

import os
import re
from collections.abc import Iterator, Mapping
from itertools import islice
from pathlib import Path
from typing import Any

from grupo.tasks.tables.base import LocatedRow, check_row_count
from grupo.tasks.tables.dataset_references import (
    HUB_FILES,
    check_files,
    check_folder,
    check_hub_card,
    check_saved,
)
from grupo.util.errors import ConfigError, suggest
from grupo.util.limits import FOLDER_FILES
from grupo.util.loader_errors import loader_errors


class DatasetTable:
    """The rows of a data set.

    Args:
        path: Its folder or name, for locations.
        dataset: The data set of `datasets`.
    """

    def __init__(self, path: str, dataset: Any) -> None:
        self.path = path
        self.dataset = dataset
        # files of images and sounds are kept as they are; `datasets` would decode them
        is_plain = dataset.format["type"] is None
        self.undecoded = is_plain and _has_files(dataset.features)
        self.rows = dataset.with_format("arrow") if self.undecoded else dataset
        check_row_count(path, len(dataset))

    def __len__(self) -> int:
        return len(self.dataset)

    def __iter__(self) -> Iterator[LocatedRow]:
        return map(self.read, range(len(self)))

    def read(self, index: int) -> LocatedRow:
        location = f"{self.path}, row {index + 1}"
        if self.undecoded:
            return location, self.rows[index : index + 1].to_pylist()[0]
        return location, self.rows[index]


def _has_files(feature: Any) -> bool:
    """Whether a feature of `datasets` has files: an image, a sound or a video, also inside lists.

    Such a feature has the flag `decode`.
    """
    if isinstance(feature, Mapping):
        return any(map(_has_files, feature.values()))
    if isinstance(feature, list | tuple):
        return any(map(_has_files, feature))
    inner = getattr(feature, "feature", None)
    return getattr(feature, "decode", None) is True or (inner is not None and _has_files(inner))


FILE_ENDINGS = (".json", ".txt", ".xlsx", ".arrow", ".yaml", ".yml", ".gz", ".zip", ".py")


def is_hub_name(path: str) -> bool:
    """True if this may be the name of a data set on the hub, `owner/name` or `name`.

    A name that ends as a file does, such as `rows.json`, is that of a missing file.

    >>> is_hub_name("openai/gsm8k"), is_hub_name("./rows"), is_hub_name("a/b/c")
    (True, False, False)
    """
    if path.endswith(FILE_ENDINGS):
        return False
    return re.fullmatch(r"\w[\w.-]*(/\w[\w.-]*)?", path) is not None


def load_dataset_table(path: str, split: str, config: str) -> DatasetTable:
    """The table of a folder or hub data set; raises `ConfigError` if `datasets` cannot read it."""
    with loader_errors(path):
        return DatasetTable(path, _load_dataset(path, split, config))


def _load_dataset(path: str, split: str, config: str) -> Any:
    _check_folder_size(Path(path))
    import datasets  # imported on demand, because the import takes a second

    saved = any((Path(path) / name).is_file() for name in ("dataset_dict.json", "state.json"))
    try:
        if not saved:
            return _prepared_dataset(path, split, config)
        check_saved(Path(path))
        dataset = datasets.load_from_disk(path)
    except ConfigError:
        raise
    except Exception as error:  # builders of `datasets` raise errors of any type
        raise ConfigError(f"{path}: {_load_error(path, error)}") from error
    if isinstance(dataset, datasets.DatasetDict):
        return _select_split(dataset, split, path)
    return dataset


def _prepared_dataset(path: str, split: str, config: str) -> Any:
    """A split of a data set; raises `ConfigError` if it names files that are not its own."""
    import datasets

    from grupo.tasks.tables.checked_downloads import downloads_of

    is_folder = Path(path).is_dir()
    check_folder(Path(path)) if is_folder else check_hub_card(path)
    builder = datasets.load_dataset_builder(path, config or None)
    folder = f"{Path(path).resolve().as_posix()}/" if is_folder else HUB_FILES
    check_files(path, folder, builder.config.data_files or {})
    builder.download_and_prepare(dl_manager=downloads_of(builder))
    return builder.as_dataset(split=split)


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
