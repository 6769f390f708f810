"""Tables are read row by row: the formats, their locations, and the memory that they take."""

import gc
import json
import tracemalloc
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from grupo.tasks import Columns, DatasetTasks, parse_task_source, split_tasks, task_key
from grupo.tasks.tables import parquet
from grupo.util.errors import ConfigError

ROWS = [{"prompt": f"{i} + 1 =", "answer": str(i + 1)} for i in range(7)]


def write_rows(folder: Path, kind: str, rows=ROWS) -> str:
    """A file with the rows, in small row groups if it is Parquet."""
    path = folder / f"rows.{kind}"
    match kind:
        case "jsonl":
            path.write_text("".join(json.dumps(row) + "\n" for row in rows))
        case "parquet":
            pq.write_table(pa.Table.from_pylist(rows), path, row_group_size=2)
        case _:
            separator = {"csv": ",", "tsv": "\t"}[kind]
            lines = [rows[0].keys(), *(row.values() for row in rows)]
            path.write_text("\n".join(map(separator.join, lines)))
    return str(path)


@pytest.mark.parametrize("kind", ["jsonl", "parquet", "csv", "tsv"])
def test_tasks_are_the_same_in_every_order_and_format(tmp_path, kind):
    tasks = DatasetTasks(write_rows(tmp_path, kind)).load()
    expected = [(row["prompt"], row["answer"], task_key(row["prompt"])) for row in ROWS]
    assert [(t.prompt, t.reference_answer, t.key) for t in tasks] == expected
    for order in ([6, 0, 3, 3, 1], [-1, -7]):
        assert [tasks[i].prompt for i in order] == [ROWS[i]["prompt"] for i in order]
    assert [task.prompt for task in tasks[2:4]] == ["2 + 1 =", "3 + 1 ="]
    assert list(tasks.keys()) == [key for _, _, key in expected]
    with pytest.raises(IndexError):
        tasks[7]


@pytest.mark.parametrize(
    ("kind", "place"), [("jsonl", "line 3"), ("parquet", "row 3"), ("csv", "line 4")]
)
def test_a_task_knows_its_line_or_row(tmp_path, kind, place):
    path = write_rows(tmp_path, kind)
    assert DatasetTasks(path).load()[2].location == f"{path}, {place}"


def test_empty_lines_count_in_locations(tmp_path):
    (tmp_path / "rows.jsonl").write_text('{"prompt": "a"}\n\n  \n{"prompt": "b"}')
    task = DatasetTasks(str(tmp_path / "rows.jsonl")).load()[1]
    assert (task.prompt, task.location) == ("b", f"{tmp_path / 'rows.jsonl'}, line 4")


def test_csv_values_are_text_with_line_ends_quotes_and_separators(tmp_path):
    path = tmp_path / "rows.csv"
    content = 'prompt,answer\r\n"a, ""b""\nc\u2028d",4\r\n\r\nü\u2028e,\r\n'
    path.write_bytes(b"\xef\xbb\xbf" + content.encode())
    first, second = DatasetTasks(str(path)).load()
    assert (first.prompt, first.reference_answer) == ('a, "b"\nc\u2028d', "4")
    assert (second.prompt, second.reference_answer) == ("ü\u2028e", "")
    assert (first.location, second.location) == (f"{path}, line 2", f"{path}, line 5")


def test_csv_columns_are_named_as_in_other_tables(tmp_path):
    (tmp_path / "rows.csv").write_text("question,level\nWhy?,3\n")
    source = parse_task_source(f"{tmp_path}/rows.csv(prompt='question')")
    assert source.columns == Columns(prompt="question")
    (task,) = source.load()
    assert (task.prompt, task.columns) == ("Why?", {"level": "3"})


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("prompt,answer\na,1\nb\n", r"line 3 has 1 values\. Allowed: 2, one for each column"),
        ("prompt,answer\na,1,2\n", r"line 2 has 3 values\. Allowed: 2"),
        ("prompt,prompt\na,1\n", r"line 1 names a column 'prompt' twice"),
        ("prompt,\na,1\n", r"line 1 names a column ''\. Allowed: a name for each"),
        ('prompt\na\n"b\n', r"line 3 is not a row of CSV: unexpected end of data"),
        ('prompt\n"a" b\n', r"line 2 is not a row of CSV: .*Allowed: quotes in pairs"),
        ("prompt\na\n\xff\n", r"line 3 is not UTF-8"),
        ("prompt,answer\n", r"rows\.csv has no rows"),
        ("", r"rows\.csv has no rows"),
        ("question\na\n", r"line 2 has no column 'prompt' for the prompt"),
    ],
)
def test_malformed_csv_is_a_config_error_with_its_line(tmp_path, content, message):
    (tmp_path / "rows.csv").write_bytes(content.encode("latin1"))
    with pytest.raises(ConfigError, match=message):
        DatasetTasks(str(tmp_path / "rows.csv")).load()


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["jsonl", "csv", "parquet"])
def test_memory_does_not_grow_with_the_rows(tmp_path, kind, monkeypatch):
    monkeypatch.setattr(parquet, "BATCH_ROWS", 4)
    rows = [{"prompt": f"{i} {'x' * 100_000}"} for i in range(60)]  # 6 MB
    path = write_rows(tmp_path, kind, rows)
    DatasetTasks(path).load()  # imports and caches of the libraries
    gc.collect()
    tracemalloc.start()
    train, held_out = split_tasks(DatasetTasks(path), 5)
    for i in range(0, len(train), 3):
        assert len(train[i].prompt) > 100_000
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert (len(train), len(held_out)) == (55, 5)
    assert peak < 2.5e6  # the held-out tasks are 0.5 MB


def test_few_row_groups_are_in_memory(tmp_path):
    tasks = DatasetTasks(write_rows(tmp_path, "parquet")).load()
    for i in (0, 6, 3, 1, 5, 2):
        assert tasks[i].prompt == ROWS[i]["prompt"]
    assert tasks.table.row_group.cache_info().currsize == parquet.ROW_GROUPS_IN_MEMORY


def test_a_prompt_that_changed_since_it_was_loaded_is_an_error(tmp_path):
    path = Path(write_rows(tmp_path, "jsonl"))
    tasks = DatasetTasks(str(path)).load()
    with path.open("r+b") as file:
        file.seek(len('{"prompt": "'))
        file.write(b"9")
    with pytest.raises(ConfigError, match=r"rows\.jsonl, line 1: the prompt has changed since"):
        tasks[0]
    assert tasks[1].prompt == "1 + 1 ="


def test_a_file_that_is_replaced_is_read_as_it_was(tmp_path):
    path = Path(write_rows(tmp_path, "jsonl"))
    tasks = DatasetTasks(str(path)).load()
    (tmp_path / "other").write_text("")
    (tmp_path / "other").replace(path)
    assert [task.prompt for task in tasks] == [row["prompt"] for row in ROWS]


def test_held_out_tasks_of_a_table_leave_training(tmp_path):
    rows = [{"prompt": text} for text in "abcab"]
    train, held_out = split_tasks(
        DatasetTasks(write_rows(tmp_path, "jsonl", rows)),
        DatasetTasks(write_rows(tmp_path, "csv", rows[:1])),
    )
    assert ([t.prompt for t in train], [t.prompt for t in held_out]) == (["b", "c", "b"], ["a"])
    assert train.num_excluded == 2


def test_only_readable_tables_are_suggested_for_a_missing_file(tmp_path):
    for name in ("rows.jsonl", "notes.txt", "model.safetensors"):
        (tmp_path / name).touch()
    with pytest.raises(ConfigError, match=r"Did you mean 'rows.jsonl'\? Allowed: rows.jsonl\.$"):
        DatasetTasks(str(tmp_path / "row.jsonl")).load()
    (tmp_path / "rows.jsonl").unlink()
    with pytest.raises(ConfigError, match=r"has no file that ends in .jsonl, .parquet, .csv"):
        DatasetTasks(str(tmp_path / "row.jsonl")).load()
