"""Questions about a database on the command line: `--env "SqlQuestions('FILE')"`."""

import json
import sqlite3
from contextlib import closing

import pytest

from grupo.util.exit_codes import EXIT_CONFIG_ERROR

pytest.importorskip("sqlglot")


@pytest.fixture
def folder(tmp_path):
    """A folder with a database of one table and questions about it."""
    with closing(sqlite3.connect(tmp_path / "t.db")) as connection, connection:
        connection.execute("CREATE TABLE t(a)")
        connection.executemany("INSERT INTO t VALUES (?)", [(i,) for i in range(20)])
    tasks = [{"prompt": f"{i}", "answer": f"SELECT a FROM t WHERE a > {i}"} for i in range(12)]
    write_tasks(tmp_path, tasks)
    return tmp_path


def write_tasks(folder, tasks):
    (folder / "tasks.jsonl").write_text("\n".join(json.dumps(task) for task in tasks))


def arguments(folder, *more):
    env = f"SqlQuestions('{folder}/t.db', instructions=''{''.join(more)})"
    return ("recipe.py", "--tasks", str(folder / "tasks.jsonl"), "--env", env, "--run")


def test_a_model_is_trained_on_a_database_of_the_user(grupo, folder):
    code, _, err = grupo(*arguments(folder), str(folder / "run"))
    assert code == 0, err
    metrics = (folder / "run" / "metrics.jsonl").read_text()
    assert '"reward/execution"' in metrics
    assert '"reward/ngrams"' in metrics


def test_a_schema_that_leaves_no_room_to_answer_is_refused(grupo, folder):
    text = ", introduction='" + "{schema}" * 9 + "'"
    code, _, err = grupo(*arguments(folder, text), str(folder / "run"))
    assert code == EXIT_CONFIG_ERROR
    observation = "env: its first observation, with descriptions of tools or of a database"
    assert f"{observation}, is too long" in err
    assert not (folder / "run").exists()


def test_a_reference_query_that_fails_is_refused(grupo, folder):
    write_tasks(folder, [{"prompt": f"{i}", "answer": "SELECT b FROM t"} for i in range(12)])
    code, _, err = grupo(*arguments(folder), str(folder / "run"))
    assert code == EXIT_CONFIG_ERROR
    assert "the reference query fails: no such column: b" in err
    assert not (folder / "run").exists()


def test_a_locked_database_is_refused(grupo, folder):
    with closing(sqlite3.connect(folder / "t.db")) as connection:
        connection.execute("BEGIN EXCLUSIVE")
        code, _, err = grupo(*arguments(folder), str(folder / "run"))
    assert code == EXIT_CONFIG_ERROR
    assert "cannot be read: database is locked" in err
