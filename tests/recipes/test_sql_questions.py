"""Questions about real tables: databases, reference queries, and schemas that are held out."""

import asyncio
import json
import sqlite3
from contextlib import closing
from itertools import islice
from random import Random
from typing import Any

import pytest

pytest.importorskip("sqlglot")

from grupo.core.types import Rollout
from grupo.envs.sql import SqlQuestions
from grupo.tasks import DatasetTasks
from grupo.util.errors import ConfigError
from grupo.util.importing import load_module_file
from tests.helpers.paths import ROOT

DATA: Any = load_module_file(ROOT / "recipes" / "real" / "sql_data.py")
RECIPES: Any = load_module_file(ROOT / "recipes" / "real" / "sql_questions.py")
STATUS = """\
Package: bash
Status: install ok installed
Section: shells
Priority: required
Installed-Size: 7000
Maintainer: A. Author <a@example.org>
Depends: base-files (>= 2.1), debianutils | busybox
Description: a shell
 Package: is no field here

Package: gone
Status: deinstall ok config-files

Package: zlib1g
Section: libs
Priority: optional
Installed-Size: 170
Maintainer: B. Builder <b@example.org>
"""
COUNTRY = {"name": "Andorra", "alpha_2": "AD", "alpha_3": "AND", "numeric": "020"}
ISO = {
    "3166-1": [COUNTRY],
    "3166-2": [{"name": "Canillo", "code": "AD-02", "type": "Parish"}],
}


@pytest.fixture
def sources(tmp_path, monkeypatch):
    (tmp_path / "status").write_text(STATUS)
    for standard, entries in ISO.items():
        (tmp_path / f"iso_{standard}.json").write_text(json.dumps({standard: entries}))
    functions = DATA.TABLES.package_rows.__globals__
    monkeypatch.setitem(functions, "DPKG_STATUS", tmp_path / "status")
    monkeypatch.setitem(functions, "ISO_CODES", tmp_path)
    return tmp_path


def test_rows_are_those_of_the_packages(sources):
    assert DATA.TABLES.package_rows() == [
        ("bash", "shells", "required", 7000),
        ("zlib1g", "libs", "optional", 170),
    ]
    assert DATA.TABLES.dependency_rows() == [("bash", "base-files"), ("bash", "debianutils")]
    assert DATA.TABLES.maintainer_rows() == [("bash", "A. Author"), ("zlib1g", "B. Builder")]
    assert DATA.TABLES.country_rows() == [("Andorra", "AD", "AND", 20)]
    assert DATA.TABLES.region_rows() == [("Canillo", "AD-02", "Parish", "AD")]


def test_sources_that_are_not_installed_are_named(sources):
    with pytest.raises(ConfigError, match="apt-get install iso-codes"):
        DATA.TABLES.currency_rows()
    (sources / "status").unlink()
    with pytest.raises(ConfigError, match="Run this on Debian"):
        DATA.TABLES.package_rows()


def test_every_reference_query_answers_its_question(sources, tmp_path):
    table = DATA.TABLES.PACKAGE
    DATA.write_database(tmp_path / "package.sqlite", [table])
    questions = list(islice(DATA.table_questions([table], "seed"), 60))
    with closing(sqlite3.connect(tmp_path / "package.sqlite")) as connection:
        for _, (question, query) in questions:
            assert question.endswith(("?", ".")), question
            connection.execute(query).fetchall()
    assert len({query.split(" FROM ")[0] for _, (_, query) in questions}) >= 4
    found = DATA.value_of_a_row(table, [("bash", "shells", "required", 7000)], Random(1))
    assert found[0].startswith("What is the ")


def test_tasks_are_usable_and_joins_run(sources, tmp_path):
    for name, tables in (("debian", DATA.GROUPS["debian"]),):
        DATA.write_database(tmp_path / f"{name}.sqlite", tables)
    DATA.write_tasks(tmp_path, "joins.jsonl", 3, DATA.join_questions(tmp_path, "debian"))
    tasks = DatasetTasks(str(tmp_path / "joins.jsonl")).load()
    SqlQuestions(str(tmp_path)).validate_tasks([tasks[i] for i in range(3)])
    assert tasks[0].columns["database"] == "debian.sqlite"


def test_demonstrations_have_the_prompt_of_the_environment(sources, tmp_path):
    DATA.write_database(tmp_path / "debian.sqlite", DATA.GROUPS["debian"])
    DATA.write_tasks(tmp_path, "joins.jsonl", 2, DATA.join_questions(tmp_path, "debian"))
    source, env = DatasetTasks(str(tmp_path / "joins.jsonl")), SqlQuestions(str(tmp_path))
    first, _ = RECIPES.Demonstrations(source, env, 2).load()
    task = source.load()[0]
    assert first.prompt == asyncio.run(env.reply(task, Rollout()))
    assert first.columns["completion"] == task.reference_answer
    assert asyncio.run(RECIPES.SFT.env.reply(first, Rollout())) == first.prompt


def test_held_out_tables_are_in_no_training_question():
    trained = {table.name for table in DATA.TABLES.TRAINED}
    assert not trained & {table.name for table in DATA.TABLES.HELD_OUT}
    assert {"package", "country"} <= trained


def test_the_recipes_differ_in_their_rewards_alone():
    names = [term.name for term in RECIPES.RECIPE.env.rewards]
    assert names == ["execution", "runs", "schema", "ngrams"]
    assert [term.name for term in RECIPES.EXECUTION.env.rewards] == ["execution"]
    same = RECIPES.EXECUTION.replace(env=RECIPES.RECIPE.env)
    assert same == RECIPES.RECIPE
