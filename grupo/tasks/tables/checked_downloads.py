"""Parquet files of a data set are checked before `datasets` reads them."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from datasets import DatasetBuilder, DownloadManager
from datasets.packaged_modules.parquet.parquet import Parquet

from grupo.core.limits import ROW_GROUP_SIZE
from grupo.tasks.row_sizes import expanded_size
from grupo.tasks.tables.parquet import ParquetTable
from grupo.util.errors import ConfigError


class CheckedDownloads(DownloadManager):
    """Raises `ConfigError` for Parquet files beyond a limit, as soon as they are on this machine.

    `datasets` has a row group in memory whole, with a text that its rows share once for each row.
    """

    def download(self, url_or_urls: Any) -> Any:
        """The paths of the files, as `datasets` downloads them."""
        paths = super().download(url_or_urls)
        for path in _flat(paths):
            _check_file(Path(path))
        return paths


def downloads_of(builder: DatasetBuilder) -> DownloadManager | None:
    """The downloads for a builder of Parquet files; None for other files."""
    if not isinstance(builder, Parquet):
        return None
    return CheckedDownloads(
        builder.dataset_name, builder.config.data_dir, base_path=builder.base_path
    )


def _flat(paths: Any) -> Iterator[str]:
    """The paths in lists and mappings."""
    if isinstance(paths, str):
        yield paths
        return
    for inner in paths.values() if isinstance(paths, dict) else paths:
        yield from _flat(inner)


def _check_file(path: Path) -> None:
    """Raise `ConfigError` for a file with a row group beyond a limit."""
    table = ParquetTable(path)
    for group in range(len(table.starts) - 1):
        size = sum(map(expanded_size, table.checked_row_group(group).columns))
        if size > ROW_GROUP_SIZE.maximum:
            raise ConfigError(
                f"{path}, row group {group + 1} has {size:,} bytes. Allowed:"
                f" {ROW_GROUP_SIZE.allowed}."
            )
