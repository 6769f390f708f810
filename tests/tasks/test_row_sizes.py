"""Sizes of texts, columns and row groups of tables of tasks."""

import json
from collections import deque
from datetime import date
from decimal import Decimal
from itertools import islice

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from grupo.tasks import DatasetTasks, FromFunction, row_sizes
from grupo.tasks.row_sizes import check_texts, longest_text, num_nested_values
from grupo.tasks.tables import parquet, parquet_sizes
from grupo.util.errors import ConfigError
from grupo.util.limits import Limit
from tests.helpers.resource_use import limited_peak

SMALL_TEXT = Limit("a text", 100, "bytes", "a test")


@pytest.fixture
def short_texts(monkeypatch):
    """Texts of 100 bytes are the longest that a row may have."""
    monkeypatch.setattr(row_sizes, "ROW_TEXT", SMALL_TEXT)
    monkeypatch.setattr(parquet_sizes, "ROW_TEXT", SMALL_TEXT)


@pytest.mark.slow
def test_a_parquet_text_of_500_mb_is_refused_from_its_metadata(tmp_path):
    size = 500_000_000
    ends = np.array([0, size], np.int32)
    buffers = [pa.py_buffer(ends), pa.py_buffer(np.full(size, ord("a"), np.uint8))]
    text = pa.StringArray.from_buffers(1, *buffers)
    options = {"compression": "zstd", "use_dictionary": False, "write_statistics": False}
    pq.write_table(pa.table({"prompt": text}), tmp_path / "a.parquet", **options)
    del text, buffers
    with limited_peak(2**26), pytest.raises(ConfigError) as refused:
        DatasetTasks(str(tmp_path / "a.parquet")).load()
    assert "row group 1: the column 'prompt' has 500,0" in str(refused.value)
    assert str(refused.value).endswith("in 1 values. Allowed: at most 67,108,864 bytes a value.")


@pytest.mark.slow
def test_one_long_text_among_short_ones_is_refused_before_it_is_a_string(tmp_path):
    rows = pa.table({"prompt": ["a"] * 1000 + ["b" * 2**27]})
    pq.write_table(rows, tmp_path / "a.parquet", use_dictionary=False)
    with pytest.raises(ConfigError, match=r"of the column 'prompt' has 134,217,728 bytes\. Allow"):
        DatasetTasks(str(tmp_path / "a.parquet")).load()


@pytest.mark.parametrize("suffix", ["jsonl", "parquet", "csv"])
def test_a_long_text_of_a_file_is_refused_with_its_place(suffix, tmp_path, short_texts):
    rows = [{"prompt": "short"}, {"prompt": "b" * 101}]
    if suffix == "jsonl":
        (tmp_path / "a.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    elif suffix == "csv":
        (tmp_path / "a.csv").write_text("prompt\nshort\n" + "b" * 101 + "\n")
    else:
        pq.write_table(pa.Table.from_pylist(rows), tmp_path / "a.parquet")
    with pytest.raises(ConfigError, match=r"'prompt' has 101 bytes\. Allowed: at most 100 bytes"):
        DatasetTasks(str(tmp_path / f"a.{suffix}")).load()


def test_texts_of_messages_and_of_functions_are_checked(short_texts):
    messages = [{"role": "user", "content": [{"type": "text", "text": "é" * 51}]}]
    with pytest.raises(ConfigError, match=r"item 1, column 'prompt' has 102 bytes"):
        FromFunction(lambda: [{"prompt": messages}]).load()
    check_texts({"a": ["x" * 100, None, 5]}, "row 1")


def test_a_large_row_group_is_refused_with_the_remedy(tmp_path, short_texts, monkeypatch):
    small = Limit("a row group", 5000, "bytes", "a test")
    monkeypatch.setattr(parquet_sizes, "ROW_GROUP_SIZE", small)
    rows = pa.table({"prompt": [f"{i:099}" for i in range(100)]})
    pq.write_table(rows, tmp_path / "a.parquet", use_dictionary=False)
    with pytest.raises(ConfigError, match=r"row group 1 has [\d,]+ bytes\. Allowed: at most 5,000"):
        DatasetTasks(str(tmp_path / "a.parquet")).load()
    pq.write_table(rows, tmp_path / "a.parquet", use_dictionary=False, row_group_size=10)
    assert len(DatasetTasks(str(tmp_path / "a.parquet")).load()) == 100


@pytest.mark.parametrize("depth", [0, 1])
def test_a_text_that_all_rows_share_is_in_memory_once(tmp_path, depth):
    shared = pa.array(["a" * 2**20])
    texts = pa.DictionaryArray.from_arrays(pa.array(np.zeros(20_000, np.int32)), shared)
    column = pa.StructArray.from_arrays([texts], ["text"]) if depth else texts
    path = tmp_path / "a.parquet"
    pq.write_table(pa.table({"x": column}), path, store_schema=False)  # 20 GB of texts
    assert path.stat().st_size < 10**6
    table = parquet.ParquetTable(path)
    with limited_peak(300 * 2**20):
        _, row = table.read(19_999)
        ((_, last),) = deque(islice(table, 300), maxlen=1)
    text = row["x"]["text"] if depth else row["x"]
    assert len(text) == 2**20
    assert last == row


def load_column(path, column):
    prompts = [str(i) for i in range(len(column))]
    pq.write_table(pa.table({"prompt": prompts, "x": column}), path, store_schema=False)
    assert path.stat().st_size < 10_000
    return DatasetTasks(str(path)).load()


@pytest.fixture
def small_row_groups(monkeypatch):
    """Row groups of 100 kB are the largest."""
    monkeypatch.setattr(
        parquet_sizes, "ROW_GROUP_SIZE", Limit("a row group", 100_000, "bytes", "a test")
    )


def test_bytes_of_a_fixed_length_that_rows_share_are_refused(tmp_path, small_row_groups):
    shared = pa.array([bytes(900)], pa.binary(900))
    column = pa.DictionaryArray.from_arrays(pa.array(np.zeros(110, np.int32)), shared)
    assert len(load_column(tmp_path / "a.parquet", column[:110])) == 110  # 908 bytes a row
    column = pa.DictionaryArray.from_arrays(pa.array(np.zeros(111, np.int32)), shared)
    with pytest.raises(ConfigError, match=r"group 1 has 100,788 bytes\. Allowed: at most 100,000"):
        load_column(tmp_path / "a.parquet", column)


def test_lists_that_take_a_kilobyte_in_the_file_are_refused(tmp_path, small_row_groups):
    numbers = pa.array(np.zeros(12_500, np.int8))
    load_column(tmp_path / "a.parquet", pa.ListArray.from_arrays([0, 12_499], numbers))
    with pytest.raises(ConfigError, match=r"group 1 has 100,008 bytes\. Allowed: at most 100,000"):
        load_column(tmp_path / "a.parquet", pa.ListArray.from_arrays([0, 12_500], numbers))


def test_values_in_the_lists_of_a_row_are_counted(tmp_path, monkeypatch):
    small = Limit("a row", 10, "values", "a test")
    monkeypatch.setattr(row_sizes, "ROW_VALUES", small)
    monkeypatch.setattr(parquet, "ROW_VALUES", small)
    rows = [[[i] * 4, [i] * 4] for i in range(5)]  # 2 lists of 4 values: 10 values
    path = tmp_path / "a.parquet"
    assert len(load_column(path, pa.array(rows))) == 5
    assert parquet.ParquetTable(path).read(4)[1]["x"] == rows[4]
    with pytest.raises(
        ConfigError, match=r"a row has 11 values in lists\. Allowed: at most 10 val"
    ):
        load_column(path, pa.array([*rows, [[1] * 4, [1] * 5]]))
    with pytest.raises(ConfigError, match=r"a row has 11 values"):
        parquet.ParquetTable(path).read(5)


@pytest.mark.parametrize(
    "column",
    [
        pa.array([[9], [1, 2, 3, 4]]),
        pa.array([[9], [1, 2, 3, 4]], pa.large_list(pa.int8())),
        pa.array([[9, 9, 9, 9], [1, 2, 3, 4]], pa.list_(pa.int8(), 4)),
        pa.array([{"x": 1, "y": []}, {"x": 1, "y": [5, 6]}]),
        pa.array([[("k", 1)], [("k", 1)]], pa.map_(pa.string(), pa.int8())),
    ],
)
def test_values_of_one_row_are_counted_at_any_depth(column):
    expected = 3 if pa.types.is_map(column.type) else 4  # one pair of two values
    assert num_nested_values(column.slice(1, 1)) == expected


def test_row_groups_are_in_memory_one_after_the_other(tmp_path):
    texts = [bytes([97 + i]).decode() * 2**21 for i in range(26)]  # 55 MB, 4 kB in the file
    path = tmp_path / "a.parquet"
    pq.write_table(pa.table({"prompt": texts}), path, row_group_size=1, compression="zstd")
    table = parquet.ParquetTable(path)
    with limited_peak(2**25):
        assert [row["prompt"][0] for _, row in table] == [text[0] for text in texts]


def test_values_of_all_types_are_those_of_the_file(tmp_path):
    rows = [
        {
            "prompt": f"p{i % 2}",
            "data": b"x",
            "messages": [{"role": "user", "content": "Hi"}],
            "price": Decimal("1.50"),
            "day": date(2026, 1, 2),
            "none": None,
            "numbers": [1.5, 2.5],
        }
        for i in range(3)
    ]
    pq.write_table(pa.Table.from_pylist(rows), tmp_path / "a.parquet")
    table = parquet.ParquetTable(tmp_path / "a.parquet")
    assert [row for _, row in table] == rows
    assert [table.read(i)[1] for i in range(3)] == rows


def test_columns_are_counted(tmp_path):
    names = [f"c{i}" for i in range(10_001)]
    pq.write_table(pa.table({name: ["a"] for name in names}), tmp_path / "a.parquet")
    (tmp_path / "a.jsonl").write_text(json.dumps(dict.fromkeys(names, "a")))
    for name in ("a.parquet", "a.jsonl"):
        with pytest.raises(ConfigError, match=r"has 10,001 columns\. Allowed: at most 10,000 col"):
            DatasetTasks(str(tmp_path / name)).load()


@pytest.mark.parametrize(
    "column",
    [
        pa.array(["a", None, "bbb"]),
        pa.array([b"a", b"bbb"]),
        pa.array([["a"], [], ["a", "bbb"]]),
        pa.array([{"x": "a", "y": [{"z": "bbb"}]}]),
        pa.array(["a", "bbb"]).dictionary_encode(),
        pa.chunked_array([["a"], ["bbb"]]),
        pa.array([[("k", "bbb")]], pa.map_(pa.string(), pa.string())),
        pa.array([b"bbb"], pa.binary(3)),
        pa.array(["bbb"], pa.json_()),
    ],
)
def test_the_longest_text_of_a_column_is_found_at_any_depth(column):
    assert longest_text(column) == 3


@pytest.mark.parametrize("column", [pa.array([1, 2]), pa.array([], pa.string()), pa.array([None])])
def test_a_column_without_texts_has_none(column):
    assert longest_text(column) == 0


@pytest.mark.parametrize(
    "column",
    [
        pa.array([2**53], pa.timestamp("s")),
        pa.array([10**9], pa.date32()),
        pa.array([1], pa.timestamp("us", "No/Zone")),
        pa.DictionaryArray.from_arrays(
            [0],
            pa.StringArray.from_buffers(
                1, pa.py_buffer(np.array([0, 1], np.int32)), pa.py_buffer(b"\xff")
            ),
        ),
    ],
)
def test_a_parquet_value_that_python_does_not_have_is_one_error(tmp_path, column):
    pq.write_table(pa.table({"prompt": ["a"], "answer": column}), tmp_path / "a.parquet")
    with pytest.raises(ConfigError, match=r"a\.parquet is not readable as Parquet: "):
        DatasetTasks(str(tmp_path / "a.parquet")).load()
    with pytest.raises(ConfigError, match="is not readable as Parquet"):
        parquet.ParquetTable(tmp_path / "a.parquet").read(0)
