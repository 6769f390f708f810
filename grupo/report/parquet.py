"""A run's rollouts as a Parquet table, a row each, for pandas, DuckDB, Spark and the like."""

import json
import os
from collections.abc import Iterable, Iterator, Sequence
from itertools import islice
from pathlib import Path
from typing import Any
from uuid import uuid4

from grupo.core.errors import Refused
from grupo.report.read_run import Record, rollouts
from grupo.report.rollouts import Wanted

ROWS = 4096  # in memory at once
PARTS = "reward/"  # before the name of a part, as in the metrics
# name, type: `prompt` is text, or JSON where it is made of messages
COLUMNS = (
    ("step", "int64"),
    ("task", "string"),
    ("prompt", "string"),
    ("answer", "string"),
    ("text", "string"),
    ("reward", "double"),
    ("advantage", "double"),
    ("length", "int64"),
    ("truncated", "bool"),
    ("failed", "string"),
)


def write(run_folder: Path, file: Path, wanted: Wanted = Wanted()) -> int:
    """Write the rollouts that are wanted into a new file; how many they are.

    The columns are those of the journal, and one `reward/…` for each part. What a rollout lacks is
    null; so is the reward of one that could not be judged, and the advantage of one that was not
    learned from. The journal is read twice, and never held.

    Raises `Refused` for a file that exists.
    """
    if file.exists() or not file.parent.is_dir():
        there = "exists" if file.exists() else "lies in no folder"
        raise Refused(f"parquet: {str(file)!r} {there}. Name a new file.")
    fresh = file.with_name(f"tmp.{uuid4().hex}")
    names = dict.fromkeys(n for r in filter(wanted, rollouts(run_folder)) for n in r["parts"])
    try:
        count = _write(fresh, tuple(names), filter(wanted, rollouts(run_folder)))
        os.replace(fresh, file)
    finally:
        fresh.unlink(missing_ok=True)
    return count


def _write(file: Path, parts: Sequence[str], found: Iterator[Record]) -> int:
    import pyarrow
    from pyarrow import parquet

    named = [*COLUMNS, *((f"{PARTS}{part}", "double") for part in parts)]
    schema = pyarrow.schema([(name, pyarrow.type_for_alias(kind)) for name, kind in named])
    count = 0
    with parquet.ParquetWriter(file, schema) as writer:
        while rows := list(islice(found, ROWS)):
            writer.write_table(_table(rows, schema))
            count += len(rows)
    return count


def _table(rows: Iterable[Record], schema: Any) -> Any:
    import pyarrow

    try:
        return pyarrow.Table.from_pylist([_row(row) for row in rows], schema)
    except (pyarrow.ArrowException, TypeError, ValueError) as error:
        said = f"the journal holds what fits no column: {error}"
        raise Refused(f"parquet: {said}. Was it written by another version of grupo?") from error


def _row(rollout: Record) -> dict[str, Any]:
    row = {name: rollout.get(name) for name, _ in COLUMNS}
    row |= {name: _text(row[name]) for name, kind in COLUMNS if kind == "string"}
    row["reward"] = None if rollout["failed"] else float(rollout["reward"])
    row["advantage"] = None if row["advantage"] is None else float(row["advantage"])
    return row | {f"{PARTS}{name}": float(x) for name, x in rollout["parts"].items()}


def _text(value: Any) -> str | None:
    r"""Text that UTF-8 can hold: halves of characters are spelled out, messages are JSON.

    >>> _text("a\ud800"), _text([{"role": "user"}]), _text(None)
    ('a\\ud800', '[{"role": "user"}]', None)
    """
    said = value if isinstance(value, str | None) else json.dumps(value, ensure_ascii=False)
    return said and said.encode("utf-8", "backslashreplace").decode()
