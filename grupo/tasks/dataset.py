"""Tasks from a table: a file, a folder, or a data set on the Hugging Face hub."""

from collections.abc import Sequence
from pathlib import Path

from grupo.core.component import component
from grupo.core.types import Task
from grupo.tasks.columns import Columns
from grupo.tasks.table_tasks import TableTasks
from grupo.tasks.tables import FILE_TABLES, Table, is_hub_name, load_dataset_table
from grupo.util.errors import ConfigError, suggest
from grupo.util.loader_errors import loader_errors
from grupo.util.user_paths import parse_path


@component
class DatasetTasks:
    """The rows of a table as tasks, each of which is read when it is needed.

    Rows in the formats of TRL and verl are read as they are, with their images, videos and audio.
    Relative paths of these begin in the folder of the file.

    Args:
        path: A file ending in .jsonl, .parquet, .csv or .tsv; a folder saved by `datasets`, or of
            data files; or a name on the hub.
        columns: The columns of prompt, answer and source.
        split: Split of a folder or hub data set.
        config: Configuration of a folder or hub data set; "" is the default one.
    """

    path: str
    columns: Columns = Columns()
    split: str = "train"
    config: str = ""

    def load(self) -> Sequence[Task]:
        path = parse_path(self.path)
        with loader_errors(self.path):
            folder = path if path.is_dir() else path.parent
            source = path.stem or self.path
            return TableTasks(self._table(path), self.path, self.columns, source, folder)

    def _table(self, path: Path) -> Table:
        if path.suffix in FILE_TABLES:
            return FILE_TABLES[path.suffix](_require_file(path))
        if path.is_file():
            raise ConfigError(
                f"{path} ends in {path.suffix!r}. Allowed: {', '.join(FILE_TABLES)}. Write it in"
                " one of these formats, with pandas for example, or name a function of tasks:"
                " file.py:function."
            )
        if path.is_dir() or is_hub_name(self.path):
            return load_dataset_table(self.path, self.split, self.config)
        raise ConfigError(f"There is no file or folder {path}. {_suggest_files(path)}")


def _require_file(path: Path) -> Path:
    if not path.is_file():
        raise ConfigError(f"There is no file {path}. {_suggest_files(path)}")
    return path


def _suggest_files(path: Path) -> str:
    """The end of an error message: tables and folders beside `path`, the nearest name first."""
    if not path.parent.is_dir():
        return f"The folder {path.parent} is missing."
    tables = [p.name for p in path.parent.iterdir() if p.suffix in FILE_TABLES and p.is_file()]
    if not tables:
        return f"The folder {path.parent} has no file that ends in {', '.join(FILE_TABLES)}."
    return suggest(path.name, tables)
