"""The SQL tool: it returns rows, and cannot write or open anything."""

import sqlite3
import time
from contextlib import closing

import pytest

from grupo.envs.tools import Sql
from grupo.envs.tools.sql_query import UnreadableDatabaseError
from grupo.util.errors import ConfigError


@pytest.fixture
def path(tmp_path):
    with sqlite3.connect(tmp_path / "towns.db") as connection:
        connection.execute("CREATE TABLE town (name TEXT, people INT)")
        connection.executemany("INSERT INTO town VALUES (?, ?)", [("Bern", 134), ("Chur", 38)])
    connection.close()
    return str(tmp_path / "towns.db")


def test_a_query_returns_its_rows(path):
    assert Sql(path)("SELECT * FROM town ORDER BY people") == "name\tpeople\nChur\t38\nBern\t134"
    assert Sql(path, max_rows=1)("SELECT name FROM town") == "name\nBern\n..."


@pytest.mark.parametrize(
    "query",
    [
        "INSERT INTO town VALUES ('Genf', 200)",
        "DROP TABLE town",
        "ATTACH 'other.db' AS other",
        "PRAGMA writable_schema = 1",
        "VACUUM INTO 'other.db'",
        "SELECT load_extension('x')",
        "SELECT zeroblob(1000000000)",
        "SELECT hex(fts3_tokenizer('simple'))",  # the address of a function in memory
        "SELECT fts3_tokenizer('simple', x'00')",  # registers a pointer
        "SELECT sqlite_compileoption_get(0)",
        "SELECT 1; SELECT 2",
    ],
)
def test_writing_opening_files_and_huge_values_are_denied(path, query, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(sqlite3.Error):
        Sql(path)(query)
    assert Sql(path)("SELECT count(*) FROM town") == "count(*)\n2"
    assert [file.name for file in tmp_path.iterdir()] == ["towns.db"]


def test_functions_of_values_are_allowed(path):
    query = (
        "SELECT upper(name), round(sqrt(people), 1), json_object('a', 1), date('2026-11-29'),"
        " rank() OVER (ORDER BY people), name LIKE 'b%', name || '!' FROM town ORDER BY people DESC"
    )
    rows = Sql(path)(query).splitlines()
    assert rows[1] == 'BERN\t11.6\t{"a":1}\t2026-11-29\t2\t1\tBern!'


def test_a_query_is_stopped_after_its_time_limit(path):
    endless = "WITH RECURSIVE n(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM n) SELECT max(x) FROM n"
    start = time.monotonic()
    with pytest.raises(TimeoutError, match=r"no answer in 0\.1 s"):
        Sql(path, time_limit=0.1)(endless)
    assert time.monotonic() - start < 2


@pytest.mark.parametrize(
    "slow",
    [
        "SELECT hex(zeroblob(500000)) LIKE '%' || substr(hex(zeroblob(300000)), 1, 49000) || '1'",
        "SELECT printf('%.*c', 1000000000, 'x')",
        "SELECT length(replace(hex(zeroblob(400000)), hex(zeroblob(200000)) || '1', 'x'))",
    ],
)
def test_one_call_of_a_function_is_stopped_after_the_time_limit(path, slow):
    start = time.monotonic()
    with pytest.raises(TimeoutError, match=r"no answer in 0\.1 s"):
        Sql(path, time_limit=0.1)(slow)
    assert time.monotonic() - start < 2
    assert Sql(path)("SELECT 1") == "1\n1"


def test_a_row_beyond_the_limit_of_memory_is_an_error(path):
    columns = ", ".join(["zeroblob(1000000)"] * 600)
    with pytest.raises(sqlite3.Error, match="needs more than 512 MiB of memory"):
        Sql(path, time_limit=20.0)(f"SELECT {columns}")


@pytest.mark.slow
def test_a_query_sorts_in_memory_alone(path):
    numbers = "WITH RECURSIVE n(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM n LIMIT 1000)"
    with pytest.raises(sqlite3.Error, match="needs more than 512 MiB of memory"):
        Sql(path, time_limit=20.0)(f"{numbers} SELECT zeroblob(1000000) || x FROM n ORDER BY 1")


def test_a_locked_database_is_an_error_that_says_so(path):
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("BEGIN EXCLUSIVE")
        with pytest.raises(UnreadableDatabaseError, match="database is locked"):
            Sql(path, time_limit=0.5)("SELECT * FROM town")


def test_a_result_of_more_than_a_mebibyte_is_cut(path):
    numbers = "WITH RECURSIVE n(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM n LIMIT 9)"
    shown = Sql(path)(f"{numbers} SELECT x, hex(zeroblob(100000)) FROM n").splitlines()
    assert [line.split("\t")[0] for line in shown] == ["x", "1", "2", "3", "4", "5", "..."]
    assert Sql(path)("SELECT zeroblob(1000000)").endswith("\n...")


def test_bytes_and_nulls_are_values(path):
    assert Sql(path)("SELECT x'6162', NULL, 1.5") == "x'6162'\tNULL\t1.5\nb'ab'\tNone\t1.5"


def test_a_missing_or_invalid_database_is_a_config_error(path, tmp_path):
    Sql(path).check()
    (tmp_path / "text.db").write_text("no database at all " * 50)
    for name, message in (("text.db", "is no SQLite database"), ("gone.db", "is not a file")):
        with pytest.raises(ConfigError, match=message):
            Sql(str(tmp_path / name)).check()
