"""Parquet files whose metadata state less than their pages hold, alone and in folders."""

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from grupo.tasks import DatasetTasks
from grupo.tasks.tables import checked_downloads, parquet_pages, parquet_sizes
from grupo.tasks.tables.base import FileBytes
from grupo.tasks.tables.parquet import ParquetTable
from grupo.tasks.tables.parquet_pages import pages_of
from grupo.util.errors import ConfigError
from grupo.util.limits import Limit
from tests.helpers.resource_use import limited_peak

MEGABYTE = 2**20


@pytest.fixture
def small_row_groups(monkeypatch):
    """Row groups of 100 kB are the largest."""
    small = Limit("a row group", 100_000, "bytes", "a test")
    for module in (parquet_sizes, checked_downloads):
        monkeypatch.setattr(module, "ROW_GROUP_SIZE", small)


def integer(value, length=0):
    """An integer of Thrift's compact protocol, lengthened without a change of its value."""
    number, data = 2 * value, bytearray()
    while number or len(data) < max(1, length):
        data.append(number & 127 | 128)
        number >>= 7
    data[-1] &= 127
    return bytes(data)


def write(path, columns, **options):
    """A file without statistics; the metadata of its first row group's first column."""
    options = {"compression": "zstd", "write_statistics": False, "store_schema": False} | options
    pq.write_table(pa.table(columns), path, **options)
    return pq.read_metadata(path).row_group(0).column(0)


def restate(path, **numbers):
    """Replace numbers in the metadata at the end of a file by others, which need no more bytes."""
    content = path.read_bytes()
    start = len(content) - 8 - int.from_bytes(content[-8:-4], "little")
    footer = content[start:]
    for value, other in ((int(name[1:]), other) for name, other in numbers.items()):
        encoded = integer(value)
        assert encoded in footer
        footer = footer.replace(encoded, integer(other, len(encoded)))
    path.write_bytes(content[:start] + footer)


def refusal(path):
    with pytest.raises(ConfigError) as refused:
        DatasetTasks(str(path)).load()
    return str(refused.value)


def test_a_page_that_is_larger_than_the_metadata_state_is_refused(tmp_path, small_row_groups):
    path = tmp_path / "a.parquet"
    column = write(path, {"prompt": ["a" * MEGABYTE]}, use_dictionary=False)
    restate(path, **{f"_{column.total_uncompressed_size}": 1000})
    assert pq.read_metadata(path).row_group(0).column(0).total_uncompressed_size == 1000
    table = ParquetTable(path)  # its metadata are in order
    for read in (lambda: table.read(0), lambda: list(table)):
        with pytest.raises(
            ConfigError, match=r"group 1 has 1,048,5\d\d bytes\. Allowed: at most 100"
        ):
            read()


def test_a_dictionary_that_is_larger_than_the_metadata_state_is_refused(tmp_path, small_row_groups):
    path = tmp_path / "a.parquet"
    texts = [f"{i}" + "a" * 100_000 for i in range(10)]
    column = write(path, {"prompt": texts}, dictionary_pagesize_limit=2**30)
    restate(path, **{f"_{column.total_uncompressed_size}": 1000})
    assert "row group 1 has 1,000,0" in refusal(path)


def test_pages_with_more_values_than_the_metadata_state_are_refused(tmp_path, small_row_groups):
    path = tmp_path / "a.parquet"
    write(path, {"prompt": np.zeros(100_000, np.int64)})
    restate(path, _100000=10)
    assert ParquetTable(path).file.metadata.row_group(0).column(0).num_values == 10
    # 20,000 values are in the first page, behind which readers stop
    assert "row group 1 has 160,000 bytes. Allowed: at most 100,000" in refusal(path)


def test_texts_that_repeat_the_beginning_of_the_one_before_are_bounded(tmp_path, small_row_groups):
    path = tmp_path / "a.parquet"
    options = {"use_dictionary": False, "column_encoding": {"prompt": "DELTA_BYTE_ARRAY"}}
    write(path, {"prompt": [f"{i}" for i in range(100)]}, **options)
    assert len(DatasetTasks(str(path)).load()) == 100
    write(path, {"prompt": ["a" * 2000 + f"{i}" for i in range(1000)]}, **options)
    assert path.stat().st_size < 10_000  # 2 MB of texts
    assert "row group 1 has " in refusal(path)


def test_metadata_with_more_rows_than_the_pages_are_one_error(tmp_path):
    path = tmp_path / "a.parquet"
    write(path, {"prompt": [f"{i}" for i in range(1000)]})
    restate(path, _1000=8000)
    problem = "row group 1 has 1,000 rows, and the metadata state 8,000"
    assert f"is not readable as Parquet: {problem}." in refusal(path)
    with pytest.raises(ConfigError, match=problem):
        ParquetTable(path).read(7999)


def test_pages_are_counted(tmp_path, monkeypatch):
    path = tmp_path / "a.parquet"
    texts = {"prompt": [f"{i}" for i in range(1000)]}
    options = {"use_dictionary": False, "data_page_size": 1, "write_batch_size": 10}
    column = write(path, texts, **options)
    for limit in (100, 99):
        monkeypatch.setattr(parquet_pages, "PAGES", Limit("pages", limit, "pages", "a test"))
        if limit == 100:
            pages = list(pages_of(FileBytes(path), column))
            assert [page.num_values for page in pages] == [10] * 100
            assert len(DatasetTasks(str(path)).load()) == 1000
    message = (
        "not readable as Parquet: the column 'prompt' has more pages. Allowed: at most 99 pages"
    )
    assert message in refusal(path)


@pytest.mark.parametrize("version", ["1.0", "2.0"])
@pytest.mark.parametrize("compression", ["none", "snappy", "zstd"])
def test_the_sizes_of_pages_are_those_of_the_metadata(tmp_path, version, compression):
    path = tmp_path / "a.parquet"
    lists = [[f"{i}"] * (i % 3) for i in range(5000)]
    options = {"data_page_version": version, "compression": compression, "data_page_size": 1000}
    column = write(path, {"x": lists}, write_statistics=True, **options)
    pages = list(pages_of(FileBytes(path), column))
    assert sum(page.num_values for page in pages) == column.num_values
    headers = column.total_uncompressed_size - sum(page.num_bytes for page in pages)
    assert 0 < headers < 200 * len(pages)
    assert [page.is_dictionary for page in pages[:2]] == [True, False]


HEADER = b"\x15\x00\x15\x10\x15\x10\x2c\x15\x02\x15\x00\x00\x00"  # a data page of 8 bytes, 1 value


@pytest.mark.parametrize(
    ("data", "problem"),
    [
        (b"", "no complete header"),
        (b"\x15", "no complete header"),
        (b"\x15\x00\x15\x10\x00", "lacks a size"),
        (HEADER.replace(b"\x10", b"\x0f"), "negative"),
        (HEADER.replace(b"\x2c", b"\x2d"), "unknown type 13"),
        (HEADER[:2] + b"\x16" + HEADER[3:], "lacks a size"),  # 64 bits, which readers pass over
        (HEADER[:-1] + b"\x05\x04\x7f\x00", "lacks a size"),  # the size again, in another type
        (b"\x15\x80\x80\x80\x80\x20" + HEADER[2:], "more than 32 bits"),
        (b"\x15" + b"\x80" * 10 + HEADER[2:], "more than 64 bits"),
        (
            b"\x05\x84\x80\x08\x10" + HEADER,
            "not of Parquet",
        ),  # field 65,538, which readers cut to 2
        (b"\x1c" * 300, "not of Parquet"),
        (b"\x01\x02" * 300, "not of Parquet"),
        (b"\x00", "lacks a size"),
        (b"\x15\x00\x15\x10\x15\x10\x25\x02\x00", "lacks a size"),  # a number, no header
    ],
)
def test_a_malformed_header_of_a_page_is_an_error(tmp_path, data, problem):
    path = tmp_path / "a"
    path.write_bytes(data)

    class Column:
        path_in_schema, num_values, total_compressed_size = "x", 1, 100
        data_page_offset, dictionary_page_offset = 0, None

    with pytest.raises(ValueError, match=problem):
        list(pages_of(FileBytes(path), Column))
    path.write_bytes(HEADER)
    assert [tuple(page) for page in pages_of(FileBytes(path), Column)] == [(8, 1, False, False)]


def test_parquet_files_of_a_folder_have_the_limits_of_one_file(tmp_path, small_row_groups):
    folder = tmp_path / "tasks" / "data"
    folder.mkdir(parents=True)
    write(folder / "train-0.parquet", {"prompt": ["1 + 1 ="], "answer": ["2"]})
    (task,) = DatasetTasks(str(folder.parent)).load()
    assert task.reference_answer == "2"
    column = write(folder / "train-1.parquet", {"prompt": ["a" * MEGABYTE]}, use_dictionary=False)
    restate(folder / "train-1.parquet", **{f"_{column.total_uncompressed_size}": 1000})
    message = refusal(folder.parent)
    assert "train-1.parquet, row group 1 has 1,048,5" in message
    assert "Allowed: at most 100,000 bytes." in message


def test_a_text_that_rows_share_is_refused_in_a_folder_where_it_would_be_in_memory_for_each(
    tmp_path,
):
    shared = pa.DictionaryArray.from_arrays(np.zeros(20_000, np.int32), ["a" * MEGABYTE])
    folder = tmp_path / "tasks"
    folder.mkdir()
    write(folder / "train.parquet", {"prompt": shared})  # 20 GB of texts
    with limited_peak(300 * MEGABYTE):
        message = refusal(folder)
    assert f"train.parquet, row group 1 has {20_000 * MEGABYTE:,} bytes. Allowed: at mo" in message
