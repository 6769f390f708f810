"""Queries of a database: what they answer, and what they cannot do."""

import sqlite3
import time

import pytest

from grupo.core.errors import ConfigError
from grupo.envs.tools import Sql


@pytest.fixture
def path(tmp_path):
    with sqlite3.connect(tmp_path / "towns.db") as opened:
        opened.execute("CREATE TABLE town (name TEXT, people INT)")
        opened.executemany("INSERT INTO town VALUES (?, ?)", [("Bern", 134), ("Chur", 38)])
    opened.close()
    return str(tmp_path / "towns.db")


def test_a_query_is_answered_by_its_rows(path):
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
        "SELECT 1; SELECT 2",
    ],
)
def test_nothing_is_written_opened_or_made_large(path, query, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(sqlite3.Error):
        Sql(path)(query)
    assert Sql(path)("SELECT count(*) FROM town") == "count(*)\n2"
    assert [file.name for file in tmp_path.iterdir()] == ["towns.db"]


def test_a_query_that_takes_too_long_is_stopped(path):
    endless = "WITH RECURSIVE n(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM n) SELECT max(x) FROM n"
    began = time.monotonic()
    with pytest.raises(TimeoutError, match=r"no answer in 0\.1 s"):
        Sql(path, time_limit=0.1)(endless)
    assert time.monotonic() - began < 2


def test_a_database_that_is_none_is_refused(path, tmp_path):
    Sql(path).check()
    (tmp_path / "text.db").write_text("no database at all " * 50)
    for name, why in (("text.db", "is no SQLite database"), ("gone.db", "is not a file")):
        with pytest.raises(ConfigError, match=why):
            Sql(str(tmp_path / name)).check()
