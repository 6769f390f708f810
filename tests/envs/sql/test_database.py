"""Databases: the schema in the prompt, altered copies, and files that are refused."""

import sqlite3
import subprocess
import sys
import time
from contextlib import closing
from pathlib import Path

import pytest

from grupo.envs.sql import database, database_at, schema_digest, schema_of
from grupo.util.errors import ConfigError
from tests.helpers.sql_shop import SCHEMA, write_shop


@pytest.fixture
def shop(tmp_path):
    return database_at(write_shop(tmp_path / "shop.sqlite"))


def rows(path, query):
    with closing(sqlite3.connect(path)) as connection:
        return connection.execute(query).fetchall()


def change(path, *statements):
    with closing(sqlite3.connect(path)) as connection, connection:
        for statement in statements:
            connection.execute(statement)


def test_the_schema_is_that_of_the_database(shop):
    assert schema_of(shop) == SCHEMA


def test_another_schema_has_another_digest(shop):
    before = schema_digest(shop)
    change(shop.path, "INSERT INTO product VALUES (99, 'x', 1, NULL)")
    assert schema_digest(database_at(shop.path)) == before
    change(shop.path, "ALTER TABLE product ADD COLUMN colour TEXT")
    assert schema_digest(database_at(shop.path)) != before


def test_every_row_is_missing_in_one_of_the_copies(shop):
    kept = [
        {row[0] for row in rows(database.altered_copy(shop, index).path, "SELECT id FROM sale")}
        for index in (0, 1)
    ]
    assert kept[0] | kept[1] == set(range(90))
    assert not kept[0] & kept[1]


def test_the_values_of_a_copy_have_moved_within_their_columns(shop):
    before = dict(rows(shop.path, "SELECT id, name FROM customer"))
    after = dict(rows(database.altered_copy(shop, 0).path, "SELECT id, name FROM customer"))
    assert set(after.values()) == {before[key] for key in after}
    assert sum(after[key] != before[key] for key in after) > len(after) / 2


def test_the_database_itself_stays_as_it_is(shop):
    before = [rows(shop.path, f"SELECT * FROM {table}") for table in ("customer", "sale")]
    database.altered_copy(shop, 0)
    assert [rows(shop.path, f"SELECT * FROM {table}") for table in ("customer", "sale")] == before


def test_copies_of_constraints_triggers_and_other_tables(tmp_path):
    path = tmp_path / "odd.sqlite"
    change(
        path,
        "CREATE TABLE kept (a INTEGER PRIMARY KEY, b INTEGER UNIQUE, c INTEGER CHECK (c > b))",
        "CREATE TABLE pair (a TEXT, b TEXT, PRIMARY KEY (a, b)) WITHOUT ROWID",
        "CREATE TABLE double (a INTEGER, twice INTEGER AS (2 * a))",
        "CREATE TABLE log (text TEXT)",
        "CREATE VIRTUAL TABLE page USING fts5(body)",
        "CREATE TRIGGER gone AFTER DELETE ON kept BEGIN INSERT INTO log VALUES ('x'); END",
        "INSERT INTO kept VALUES (1, 2, 3), (2, 3, 4), (3, 4, 5), (4, 5, 6)",
        "INSERT INTO pair VALUES ('a', 'b'), ('a', 'c')",
        "INSERT INTO double (a) VALUES (1), (2), (3)",
        "INSERT INTO page VALUES ('some words')",
    )
    copy = database.altered_copy(database_at(str(path)), 0).path
    assert rows(copy, "SELECT * FROM log") == []
    assert all(twice == 2 * a for a, twice in rows(copy, "SELECT * FROM double"))
    assert rows(copy, "SELECT body FROM page WHERE page MATCH 'words'") == [("some words",)]


def test_a_missing_file_is_refused(tmp_path):
    with pytest.raises(ConfigError, match=r"is not a file\. Allowed: a SQLite database"):
        database_at(str(tmp_path / "gone.sqlite"))


def test_a_name_that_no_file_can_have_is_refused():
    with pytest.raises(ConfigError, match=r"^path: 'a{40}.* is not a file") as caught:
        database_at("a" * 5000)
    assert len(str(caught.value)) < 300


def test_a_file_of_another_kind_is_refused(tmp_path):
    (tmp_path / "text.sqlite").write_text("no database at all " * 50)
    with pytest.raises(ConfigError, match="cannot be read: file is not a database"):
        schema_of(database_at(str(tmp_path / "text.sqlite")))


def test_a_database_without_tables_is_refused(tmp_path):
    change(tmp_path / "empty.sqlite", "VACUUM")
    with pytest.raises(ConfigError, match="has no table"):
        schema_of(database_at(str(tmp_path / "empty.sqlite")))


def test_a_locked_database_is_refused(shop, monkeypatch):
    monkeypatch.setattr(database, "TIME_LIMIT", 0.5)
    with closing(sqlite3.connect(shop.path)) as connection:
        connection.execute("BEGIN EXCLUSIVE")
        with pytest.raises(ConfigError, match="cannot be read: database is locked"):
            schema_of(shop)
    assert schema_of(shop) == SCHEMA


def test_a_schema_that_no_prompt_holds_is_refused(tmp_path, monkeypatch):
    monkeypatch.setattr(database, "MAX_TABLES", 2)
    with pytest.raises(ConfigError, match=r"has 2 tables or more.*Allowed: at most 2 tables"):
        schema_of(database_at(write_shop(tmp_path / "wide.sqlite")))


def test_a_database_that_is_too_large_for_copies_is_refused(tmp_path, monkeypatch):
    monkeypatch.setattr(database, "MAX_COPIED_BYTES", 1000)
    shop = database_at(write_shop(tmp_path / "large.sqlite"))
    with pytest.raises(ConfigError, match="Allowed: a smaller database, or altered_copies=0"):
        database.altered_copy(shop, 0)


ROWS = "INSERT INTO t SELECT value FROM json_each('[1, 2, 3, 4, 5, 6, 7, 8]')"
VIEWS = tuple(
    f"CREATE VIEW v{i} AS SELECT x.a FROM {'t' if i == 0 else f'v{i - 1}'} x, t y WHERE x.a IN"
    f" (SELECT a FROM {'t' if i == 0 else f'v{i - 1}'})"
    for i in range(60)
)
# 80 million characters for the last row, more than a database that is copied has bytes
LARGE_INDEX = "CREATE INDEX i ON t (length(hex(zeroblob(a * 5000000))))"


def test_views_that_double_are_refused_at_the_time_limit(tmp_path, monkeypatch):
    monkeypatch.setattr(database, "COPY_TIME_LIMIT", 1.0)
    path = tmp_path / "views.sqlite"
    change(path, "CREATE TABLE t (a)", ROWS, *VIEWS)
    with pytest.raises(ConfigError, match=r"the process that copies it was killed after 1\.0 s"):
        database.altered_copy(database_at(str(path)), 0)


def test_values_that_an_index_enlarges_are_refused(tmp_path):
    path = tmp_path / "index.sqlite"
    change(path, "CREATE TABLE t (a)", ROWS, LARGE_INDEX)
    with pytest.raises(ConfigError, match="cannot be copied: string or blob too big"):
        database.altered_copy(database_at(str(path)), 0)


KILLED = """
import os, signal, sys
from grupo.envs.sql import database_at
from grupo.envs.sql.database import altered_copy
print(altered_copy(database_at(sys.argv[1]), 0).path, flush=True)
os.kill(os.getpid(), signal.SIGKILL)
"""


def test_no_copy_is_left_by_a_process_that_is_killed(shop):
    command = [sys.executable, "-c", KILLED, shop.path]
    copy = Path(subprocess.run(command, capture_output=True, text=True).stdout.strip())
    deadline = time.monotonic() + 60
    while copy.parent.parent.exists() and time.monotonic() < deadline:
        time.sleep(0.05)
    assert copy.name == "altered.sqlite"
    assert not copy.parent.parent.exists()


def test_a_view_that_no_query_can_read_has_no_columns(tmp_path):
    path = tmp_path / "views.sqlite"
    change(path, "CREATE TABLE t (A, b)", "CREATE VIEW v AS SELECT * FROM gone")
    assert database.columns_of(database_at(str(path))) == {"t": ("a", "b"), "v": ()}


def test_the_columns_of_a_file_of_another_kind_are_refused(tmp_path):
    (tmp_path / "text.sqlite").write_text("no database at all " * 50)
    with pytest.raises(ConfigError, match="cannot be read: file is not a database"):
        database.columns_of(database_at(str(tmp_path / "text.sqlite")))
