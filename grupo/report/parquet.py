"""A run's rollouts as a Parquet table, a row each, for pandas, DuckDB, Spark and the like."""

import json
import os
from collections.abc import Iterable, Iterator, Sequence
from itertools import islice
from pathlib import Path
from typing import Any
from uuid import uuid4

from grupo.core.errors import ConfigError
from grupo.report.read_run import Record, read_rollouts
from grupo.report.rollouts import RolloutFilter

BATCH_ROWS = 4096  # in memory at once
REWARD_TERM_PREFIX = "reward/"  # before the name of a part, as in the metrics
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


def write_parquet(
    run_folder: Path, file: Path, rollout_filter: RolloutFilter = RolloutFilter()
) -> int:
    """Write the rollouts that are wanted into a new file; how many they are.

    The columns are those of the journal, and one `reward/…` for each part. What a rollout lacks is
    null; so is the reward of one that could not be judged, and the advantage of one that was not
    learned from. The journal is read twice, and never held.

    Raises `ConfigError` for a file that exists.
    """
    if file.exists() or not file.parent.is_dir():
        there = "exists" if file.exists() else "lies in no folder"
        raise ConfigError(f"parquet: {str(file)!r} {there}. Name a new file.")
    fresh = file.with_name(f"tmp.{uuid4().hex}")
    names = dict.fromkeys(
        n for r in filter(rollout_filter, read_rollouts(run_folder)) for n in r["parts"]
    )
    try:
        count = _write(fresh, tuple(names), filter(rollout_filter, read_rollouts(run_folder)))
        os.replace(fresh, file)
    finally:
        fresh.unlink(missing_ok=True)
    return count


def _write(file: Path, reward_terms: Sequence[str], found: Iterator[Record]) -> int:
    import pyarrow
    from pyarrow import parquet

    named = [*COLUMNS, *((f"{REWARD_TERM_PREFIX}{part}", "double") for part in reward_terms)]
    schema = pyarrow.schema([(name, pyarrow.type_for_alias(kind)) for name, kind in named])
    count = 0
    with parquet.ParquetWriter(file, schema) as writer:
        while rows := list(islice(found, BATCH_ROWS)):
            writer.write_table(_table(rows, schema))
            count += len(rows)
    return count


def _table(rows: Iterable[Record], schema: Any) -> Any:
    import pyarrow

    try:
        return pyarrow.Table.from_pylist([_row(row) for row in rows], schema)
    except (pyarrow.ArrowException, TypeError, ValueError) as error:
        said = f"the journal holds what fits no column: {error}"
        raise ConfigError(
            f"parquet: {said}. Was it written by another version of grupo?"
        ) from error


def _row(rollout: Record) -> dict[str, Any]:
    row = {name: rollout.get(name) for name, _ in COLUMNS}
    row |= {name: _utf8_text(row[name]) for name, kind in COLUMNS if kind == "string"}
    row["reward"] = None if rollout["failed"] else float(rollout["reward"])
    row["advantage"] = None if row["advantage"] is None else float(row["advantage"])
    return row | {f"{REWARD_TERM_PREFIX}{name}": float(x) for name, x in rollout["parts"].items()}


def _utf8_text(value: Any) -> str | None:
    r"""Text that UTF-8 can hold: halves of characters are spelled out, messages are JSON.

    >>> _utf8_text("a\ud800"), _utf8_text([{"role": "user"}]), _utf8_text(None)
    ('a\\ud800', '[{"role": "user"}]', None)
    """
    said = value if isinstance(value, str | None) else json.dumps(value, ensure_ascii=False)
    return said and said.encode("utf-8", "backslashreplace").decode()
