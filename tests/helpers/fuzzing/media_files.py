"""Images, videos, sounds and Parquet files with mutated headers, bytes and lengths."""

import io
import json
import tempfile
import wave
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from hypothesis import strategies as st
from PIL import Image as Pictures

from grupo.core.media_values import as_media
from grupo.tasks.columns import Columns
from grupo.tasks.table_tasks import TableTasks
from grupo.tasks.tables.parquet import ParquetTable
from tests.helpers.fuzzing.target import Target, mutated
from tests.helpers.fuzzing.values import json_values

FORMATS = ("PNG", "JPEG", "GIF", "WEBP", "BMP")
ROWS: tuple[dict[str, Any], ...] = (
    {"prompt": "1 + 1 =", "answer": "2", "level": 1.5, "tags": ["a"], "extra": {"b": 1}},
    {"prompt": "2 + 2 =", "answer": "4", "level": None, "tags": [], "extra": {"b": None}},
)
ADDRESSES = ("data:,", "data:image/png;base64,AAAA", "file://[", "http://a", "data:x;base64,?")
OFFSETS = st.integers(0, 60)  # of a header
NUMBERS = st.sampled_from((0, 1, 255, 2**15, 2**16 - 1, 2**31 - 1, 2**31, 2**32 - 1))


def _picture(name: str, frames: int) -> bytes:
    pixels = np.arange(frames * 8 * 6 * 3, dtype=np.uint8).reshape(frames, 8, 6, 3)
    pictures = [Pictures.fromarray(frame) for frame in pixels]
    more: dict[str, Any] = {"save_all": True, "append_images": pictures[1:], "duration": 50}
    file = io.BytesIO()
    pictures[0].save(file, name, **(more if frames > 1 else {}))
    return file.getvalue()


def _sound(channels: int, width: int) -> bytes:
    file = io.BytesIO()
    with wave.open(file, "wb") as sound:
        sound.setnchannels(channels)
        sound.setsampwidth(width)
        sound.setframerate(8000)
        sound.writeframes(bytes(range(48)))
    return file.getvalue()


def _with_number(change: tuple[bytes, int, int, int, bool]) -> bytes:
    """A file with a number of one to four bytes in its header."""
    data, offset, number, size, is_big = change
    number %= 1 << 8 * size
    written = number.to_bytes(size, "big" if is_big else "little")
    return data[:offset] + written + data[offset + size :]


def _headers(*files: bytes) -> st.SearchStrategy[bytes]:
    sizes = st.sampled_from((1, 2, 4))
    return st.tuples(st.sampled_from(files), OFFSETS, NUMBERS, sizes, st.booleans()).map(
        _with_number
    )


IMAGES = tuple(_picture(name, 1) for name in FORMATS)
ANIMATIONS = tuple(_picture(name, 3) for name in ("PNG", "GIF", "WEBP"))
SOUNDS = tuple(_sound(channels, width) for channels in (1, 2) for width in (1, 2, 3, 4))


def _decode(pair: tuple[str, Any]) -> object:
    return as_media(*pair)


def _files(kind: str, *files: bytes) -> st.SearchStrategy[tuple[str, Any]]:
    return st.tuples(st.just(kind), mutated(*files) | _headers(*files))


VALUES = st.tuples(
    st.sampled_from(("image", "video", "audio")),
    json_values("bytes", "path", "url", "array", "sampling_rate", "fps", "image", "video", "audio")
    | st.sampled_from(ADDRESSES),
)
MEDIA = Target(
    _decode,
    _files("image", *IMAGES)
    | _files("video", *ANIMATIONS)
    | _files("audio", *SOUNDS)
    | st.tuples(st.sampled_from(("image", "video", "audio")), mutated(*IMAGES, *SOUNDS))
    | VALUES,
    cases=1800,
    seconds=3.0,
)


def _table(rows: Any, **options: Any) -> bytes:
    file = io.BytesIO()
    pq.write_table(pa.Table.from_pylist(list(rows)), file, **options)
    return file.getvalue()


TABLES = (
    _table(ROWS),
    _table(ROWS, compression="none", use_dictionary=False, row_group_size=1),
    _table(ROWS, compression="gzip", data_page_version="2.0"),
)


def _typed_columns() -> Iterator[bytes]:
    """Tables whose columns have other types than texts."""
    times: list[Any] = [pa.array([1], pa.timestamp(unit, "UTC")) for unit in ("s", "ns")]
    others: list[Any] = [
        pa.array([2**53], pa.timestamp("s")),
        pa.array([2**62], pa.timestamp("us")),
        pa.array([2**61], pa.time64("us")),
        pa.array([10**9], pa.date32()),
        pa.array([b"\xff\xfe"], pa.binary()),
        pa.array([[("a", 1), ("a", 2)]], pa.map_(pa.string(), pa.int64())),
        pa.array([1], pa.duration("us")),
        pa.array(["a"]).dictionary_encode(),
        pa.array([None], pa.null()),
        pa.array([float("nan")]),
    ]
    for column in (*times, *others):
        file = io.BytesIO()
        pq.write_table(pa.table({"prompt": ["a"], "answer": column}), file)
        yield file.getvalue()
        file = io.BytesIO()
        pq.write_table(pa.table({"prompt": column}), file)
        yield file.getvalue()


def _with_metadata(pair: tuple[str, Any]) -> bytes:
    """A table with other metadata of Arrow and pandas."""
    key, value = pair
    text = json.dumps(value).encode()
    table = pa.Table.from_pylist(list(ROWS)).replace_schema_metadata({key: text})
    file = io.BytesIO()
    pq.write_table(table, file)
    return file.getvalue()


def _footer(pair: tuple[bytes, bytes]) -> bytes:
    """A table with the end of another one: the metadata describe other pages."""
    first, second = pair
    return first[: len(first) // 2] + second[len(second) // 2 :]


def _read_table(content: bytes) -> object:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "case.parquet")
        path.write_bytes(content)
        tasks = TableTasks(ParquetTable(path), "case.parquet", Columns(), "")
        return [tasks[index] for index in range(min(len(tasks), 5))]


PARQUET = Target(
    _read_table,
    mutated(*TABLES)
    | _headers(*TABLES)
    | st.sampled_from(tuple(_typed_columns()))
    | st.tuples(st.sampled_from(("pandas", "ARROW:schema", "huggingface")), json_values("columns"))
    .map(_with_metadata)
    | st.tuples(st.sampled_from(TABLES), st.sampled_from(TABLES)).map(_footer),
    cases=1200,
)  # fmt: skip
