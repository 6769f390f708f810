"""A survey as a Parquet file, one row for each task."""

import json
import math
import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, fields
from pathlib import Path
from typing import Any
from uuid import uuid4

from grupo.evidence.survey.measure import TaskSurvey
from grupo.util.errors import ConfigError

METADATA = b"grupo.evidence.survey"  # key of the facts in the file's metadata
_KINDS: Mapping[Any, str] = {str: "string", int: "int64", float: "double"}


def check_new_file(file: Path) -> None:
    """Raise `ConfigError` if a survey cannot be written to this path."""
    if file.suffix != ".parquet":
        raise ConfigError(f"out: {str(file)!r}. Allowed: a file that ends in .parquet.")
    if file.exists() or not file.parent.is_dir():
        reason = "exists" if file.exists() else "is in a folder that does not exist"
        raise ConfigError(f"out: {str(file)!r} {reason}. Name a new file.")


def write_survey(
    file: Path, parts: Iterable[Sequence[TaskSurvey]], facts: Mapping[str, Any]
) -> list[TaskSurvey]:
    """Write the parts of a survey to a new file as they arrive, and return all rows.

    The file appears when it is complete. Numbers that do not exist are null.

    Args:
        file: The file.
        parts: Rows, some at a time.
        facts: What the survey was made with; the file's metadata.
    """
    import pyarrow
    from pyarrow import parquet

    schema = pyarrow.schema(
        [(field.name, pyarrow.type_for_alias(_KINDS[field.type])) for field in fields(TaskSurvey)],
        {METADATA: json.dumps(dict(facts)).encode()},
    )
    rows: list[TaskSurvey] = []
    temporary = file.with_name(f"tmp.{uuid4().hex}")
    try:
        with parquet.ParquetWriter(temporary, schema) as writer:
            for part in parts:
                rows += part
                writer.write_table(pyarrow.Table.from_pylist([*map(_row, part)], schema))
        os.replace(temporary, file)
    finally:
        temporary.unlink(missing_ok=True)
    return rows


def _row(survey: TaskSurvey) -> dict[str, Any]:
    return {
        name: None if isinstance(value, float) and math.isnan(value) else value
        for name, value in asdict(survey).items()
    }
