"""Tasks from a table: a file, a folder, or a data set on the Hugging Face hub."""

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from grupo.core.component import component
from grupo.core.errors import ConfigError, suggest
from grupo.core.loader_errors import loader_errors
from grupo.core.types import Task
from grupo.core.user_paths import parse_path
from grupo.tasks import readers
from grupo.tasks.columns import Columns, task_from_row


@component
class DatasetTasks:
    """The rows of a table as tasks.

    Rows in the formats of TRL and verl are read as they are.

    Args:
        path: A file ending in .jsonl or .parquet; a folder saved by `datasets`, or of data files;
            or a name on the hub.
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
        source = path.stem or self.path
        with loader_errors(self.path):
            tasks = [
                task_from_row(row, self.columns, location, source)
                for location, row in self._rows(path)
            ]
        if not tasks:
            raise ConfigError(f"{self.path} has no rows.")
        return tasks

    def _rows(self, path: Path) -> readers.LocatedRows:
        if path.suffix in READERS:
            return READERS[path.suffix](_require_file(path))
        if path.is_file():
            raise ConfigError(f"{path} ends in {path.suffix!r}. Allowed: {', '.join(READERS)}.")
        if path.is_dir() or readers.is_hub_name(self.path):
            return readers.read_dataset(self.path, self.split, self.config)
        raise ConfigError(f"There is no file or folder {path}. {_suggest_files(path)}")


def _require_file(path: Path) -> Path:
    if not path.is_file():
        raise ConfigError(f"There is no file {path}. {_suggest_files(path)}")
    return path


def _suggest_files(path: Path) -> str:
    """The end of an error message: the files beside `path`, the nearest name first."""
    siblings = [p.name for p in path.parent.glob("*")] if path.parent.is_dir() else []
    if not siblings:
        return f"The folder {path.parent} is empty or missing."
    return suggest(path.name, [p for p in siblings if not p.startswith(".")][:50])


READERS: Mapping[str, Callable[[Path], readers.LocatedRows]] = {
    ".jsonl": readers.read_jsonl,
    ".parquet": readers.read_parquet,
}
