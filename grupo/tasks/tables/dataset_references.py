"""References in the files of a data set to files elsewhere: none of them is followed."""

from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

import yaml

from grupo.util.errors import ConfigError
from grupo.util.file_names import stays_inside
from grupo.util.json_text import object_of_file

CARD, CARD_SETTINGS = "README.md", ".huggingface.yaml"  # both may name the files of the data set
HUB_FILES = "hf://datasets/"  # begins the address of a file of the hub
ALLOWED = "Allowed: files in its own folder. Get the others yourself, and name them in --tasks."


def check_folder(folder: Path) -> None:
    """Raise `ConfigError` if the card of a folder names files outside of it, or addresses.

    Args:
        folder: The folder of a data set.
    """
    files = (folder / name for name in (CARD, CARD_SETTINGS))
    _check_cards(str(folder), "", [file for file in files if file.is_file()])


def check_hub_card(name: str) -> None:
    """Raise `ConfigError` if the card of a data set of the hub names files that are not on the hub.

    Args:
        name: The name of the data set.
    """
    from huggingface_hub import hf_hub_download
    from huggingface_hub.errors import EntryNotFoundError

    for file in (CARD, CARD_SETTINGS):
        with suppress(EntryNotFoundError):  # it has no such file, or there is no network
            _check_cards(name, HUB_FILES, [Path(hf_hub_download(name, file, repo_type="dataset"))])


def check_files(name: str, folder: str, files: Mapping[Any, Iterable[object]]) -> None:
    """Raise `ConfigError` for files of a data set outside of its folder.

    Args:
        name: The name of the data set.
        folder: Begins the path or the address of each file, and ends with a slash.
        files: The files by split, as `datasets` found them.
    """
    for file in (str(file) for files_of_split in files.values() for file in files_of_split):
        if not file.startswith(folder) or not stays_inside(file.removeprefix(folder)):
            raise ConfigError(f"{name}: it names the file {file[:200]!r}. {ALLOWED}")


def check_saved(folder: Path) -> None:
    """Raise `ConfigError` if a data set saved by `datasets` names files outside of its folder.

    Args:
        folder: The folder of `save_to_disk`.
    """
    splits = _list(object_of_file(folder / "dataset_dict.json"), "splits")
    _check_saved_names(folder, splits)
    for part in (folder, *(folder / split for split in splits)):
        files = _list(object_of_file(part / "state.json"), "_data_files")
        names = [file.get("filename") if isinstance(file, dict) else file for file in files]
        _check_saved_names(part, names)


def _check_saved_names(folder: Path, names: Iterable[object]) -> None:
    for name in names:
        if not stays_inside(name):
            raise ConfigError(f"{folder}: it names the file {str(name)[:200]!r}. {ALLOWED}")


def _check_cards(name: str, folder: str, cards: Iterable[Path]) -> None:
    """Raise `ConfigError` for a card with a pattern outside of a folder, or of the data set's."""
    for card in cards:
        for pattern in _patterns(_card_settings(card)):
            if not stays_inside(str(pattern).removeprefix(folder)):
                raise ConfigError(f"{name}: {card.name} names {str(pattern)[:200]!r}. {ALLOWED}")


def _patterns(settings: Any) -> Iterator[object]:
    """The patterns of files in the settings of a card; folders of files are among them."""
    configs = settings.get("configs") if isinstance(settings, dict) else None
    for config in configs if isinstance(configs, list) else ():
        if isinstance(config, dict):
            yield from filter(None, (config.get("data_dir"),))
            yield from _texts(config.get("data_files"))


def _texts(files: Any) -> Iterator[object]:
    """The patterns in a text, a list, or a mapping; names of splits are among them."""
    if isinstance(files, str):
        yield files
    elif isinstance(files, list | dict):
        for inner in files.values() if isinstance(files, dict) else files:
            yield from _texts(inner)


def _card_settings(file: Path) -> Any:
    """The settings of a card, read as `datasets` reads them: other readings find other files."""
    from huggingface_hub import DatasetCard

    if file.name == CARD:
        return DatasetCard.load(file).data.to_dict()
    return yaml.safe_load(file.read_text(encoding="utf-8"))


def _list(settings: Mapping[str, Any], field: str) -> list[Any]:
    value = settings.get(field)
    return value if isinstance(value, list) else []
