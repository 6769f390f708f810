"""Export of a run's rollouts to Parquet, one row per rollout."""

import json
import os
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from itertools import islice
from pathlib import Path
from typing import Any
from uuid import uuid4

from grupo.report.read_run import Record, read_rollouts
from grupo.report.rollouts import RolloutFilter
from grupo.storage.media_files import FIELDS, MediaFiles, references_in
from grupo.util.errors import ConfigError
from grupo.util.run_files import MEDIA_FOLDER

BATCH_ROWS = 4096  # rows in memory at once
REWARD_TERM_PREFIX = "reward/"  # before the name of a reward term, as in the metrics
# name and type; `turns` and a `prompt` of chat messages are stored as JSON
COLUMNS = (
    ("step", "int64"),
    ("task", "string"),
    ("prompt", "string"),
    ("reference_answer", "string"),
    ("text", "string"),
    ("turns", "string"),
    ("reward", "double"),
    ("advantage", "double"),
    ("length", "int64"),
    ("truncated", "bool"),
    ("error", "string"),
)


def write_parquet(
    run_folder: Path, file: Path, rollout_filter: RolloutFilter = RolloutFilter()
) -> int:
    """Write the selected rollouts into a new Parquet file and return their number.

    The columns are those of the journal, and one `reward/<term>` per reward term. Missing values
    are null, as are the reward of a rollout that could not be scored and the advantage of one that
    was not trained on. A run with images, videos or audio has the column `media` with the files of
    each rollout. The journal is streamed twice and never held in memory.

    Args:
        run_folder: the folder of the run.
        file: the file to write.
        rollout_filter: which rollouts to write.

    Raises:
        ConfigError: the file exists, its folder does not, or the journal does not fit the columns.
    """
    if file.exists() or not file.parent.is_dir():
        reason = "exists" if file.exists() else "is in a folder that does not exist"
        raise ConfigError(f"parquet: {str(file)!r} {reason}. Name a new file.")
    temporary = file.with_name(f"tmp.{uuid4().hex}")
    names = dict.fromkeys(
        n for r in filter(rollout_filter, read_rollouts(run_folder)) for n in r["reward_terms"]
    )
    try:
        rollouts = filter(rollout_filter, read_rollouts(run_folder))
        count = _write(temporary, tuple(names), rollouts, run_folder / MEDIA_FOLDER)
        os.replace(temporary, file)
    finally:
        temporary.unlink(missing_ok=True)
    return count


def _write(
    file: Path, reward_terms: Sequence[str], rollouts: Iterator[Record], folder: Path
) -> int:
    import pyarrow
    from pyarrow import parquet

    columns = [*COLUMNS, *((f"{REWARD_TERM_PREFIX}{name}", "double") for name in reward_terms)]
    fields = [(name, pyarrow.type_for_alias(kind)) for name, kind in columns]
    if folder.is_dir():
        names = [(name, pyarrow.string()) for name in FIELDS]
        media = pyarrow.struct([*names, ("bytes", pyarrow.binary())])
        fields.append(("media", pyarrow.list_(media)))
    schema = pyarrow.schema(fields)
    count = 0
    with parquet.ParquetWriter(file, schema) as writer:
        while rows := list(islice(rollouts, BATCH_ROWS)):
            writer.write_table(_table(rows, schema, folder))
            count += len(rows)
    return count


def _table(rows: Iterable[Record], schema: Any, folder: Path) -> Any:
    import pyarrow

    try:
        return pyarrow.Table.from_pylist([_row(row) | _media(row, folder) for row in rows], schema)
    except (pyarrow.ArrowException, TypeError, ValueError, ArithmeticError) as error:
        raise ConfigError(
            f"parquet: the journal holds a value that does not fit its column: {error!s:.200}."
            " Was it written by another version of grupo?"
        ) from error


def _row(rollout: Record) -> dict[str, Any]:
    row = {name: rollout.get(name) for name, _ in COLUMNS}
    row |= {name: _utf8_text(row[name]) for name, kind in COLUMNS if kind == "string"}
    row["reward"] = None if rollout["error"] else float(rollout["reward"])
    row["advantage"] = None if row["advantage"] is None else float(row["advantage"])
    terms = rollout["reward_terms"].items()
    return row | {f"{REWARD_TERM_PREFIX}{name}": float(x) for name, x in terms}


def _media(rollout: Record, folder: Path) -> dict[str, Any]:
    """The images, videos and audio of prompt and turns, with their files; null if one is lost."""
    if not folder.is_dir():
        return {}
    found = references_in([rollout["prompt"], rollout.get("turns", [])])
    by_digest = {str(reference["digest"]): reference for reference in found}
    contents = {digest: _content(x, folder) for digest, x in by_digest.items()}
    return {"media": [{**by_digest[digest], "bytes": x} for digest, x in contents.items()]}


def _content(reference: Record, folder: Path) -> bytes | None:
    """The file of a reference; None if it is lost or damaged."""
    with suppress(ValueError):
        return MediaFiles(folder).read(reference).data
    return None


def _utf8_text(value: Any) -> str | None:
    r"""A value as valid UTF-8: lone surrogates are escaped, chat messages become JSON.

    >>> _utf8_text("a\ud800"), _utf8_text([{"role": "user"}]), _utf8_text(None)
    ('a\\ud800', '[{"role": "user"}]', None)
    """
    text = value if isinstance(value, str | None) else json.dumps(value, ensure_ascii=False)
    return text and text.encode("utf-8", "backslashreplace").decode()
