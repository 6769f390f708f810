"""Rewards of queries: golden numbers of two papers, and no wrong query above a right one."""

import asyncio
import sqlite3
import sys
from contextlib import closing
from dataclasses import dataclass

import pytest

pytest.importorskip("sqlglot")

from grupo.envs import SingleTurn
from grupo.envs.sql import (
    NgramOverlap,
    SchemaOverlap,
    SqlExecution,
    UnlessRight,
    cognisql_rewards,
    overlap,
    partial_credit,
    reasoning_sql_rewards,
)
from grupo.util.errors import ConfigError
from tests.helpers.sql_shop import answer, shop_task, write_shop

OLD = "SELECT name FROM customer WHERE age > 60"
ENDLESS = "WITH RECURSIVE n(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM n) SELECT max(x) FROM n"
COLUMNS = {"t": ("a", "b", "c"), "u": ("a", "d")}


@pytest.fixture(scope="module")
def path(tmp_path_factory):
    return write_shop(tmp_path_factory.mktemp("shop") / "shop.sqlite")


@dataclass(frozen=True)
class ConstantJudge:
    """A judge that gives every answer the same value."""

    value: float

    async def __call__(self, task, rollouts):
        return [self.value for _ in rollouts]


def rewards(terms, task, *texts):
    env = SingleTurn(terms, time_limit=30.0)
    results = asyncio.run(env.score(task, [answer(text) for text in texts]))
    assert [result.error for result in results] == [""] * len(texts)
    return [result.reward for result in results]


def test_cognisql_has_four_values(path):
    tagged = "<think>Customers.</think>\n<answer>{}</answer>"
    texts = [
        tagged.format(OLD + " ORDER BY name"),  # in another order of rows: 1 + 0.1
        tagged.format("SELECT name FROM product"),  # wrong rows: 0.1
        tagged.format(ENDLESS),  # no answer in time: 0.1
        OLD,  # right without tags: 0
    ]
    found = rewards(cognisql_rewards(), shop_task(path, OLD), *texts)
    assert found == pytest.approx([1.1, 0.1, 0.1, 0.0])


def test_reasoning_sql_gives_9_to_the_reference_and_3_6_to_a_close_query(path, tmp_path):
    task = shop_task(two_tables(tmp_path), "SELECT a, c FROM t WHERE NOT c")
    tagged = "<reasoning>Of t.</reasoning><answer>{}</answer>"
    # schema: {t, a, b} and {t, a, c} share 2 of 4; bigrams: "select a", "a ,", "from t" of
    # 5 + 8 - 3 = 10; 2 * 0.4 + 1 + 0.5 + 0.3 + 1 = 3.6
    found = rewards(
        reasoning_sql_rewards(ConstantJudge(0.4)),
        task,
        tagged.format("SELECT a, c FROM t WHERE NOT c"),
        tagged.format("SELECT a, b FROM t"),
        "SELECT a, c FROM t WHERE c = 0",
    )
    assert found == pytest.approx([9.0, 3.6, 8.0])


def two_tables(folder):
    with closing(sqlite3.connect(folder / "t.sqlite")) as connection, connection:
        connection.execute("CREATE TABLE t (a INTEGER, b INTEGER, c INTEGER)")
        connection.executemany("INSERT INTO t VALUES (?, ?, ?)", [(i, -i, i % 2) for i in range(9)])
    return str(folder / "t.sqlite")


RIGHT = (
    OLD,
    "SELECT c.name FROM customer AS c WHERE NOT c.age <= 60",
    "WITH old AS (SELECT * FROM customer WHERE age > 60) SELECT name FROM old",
    "SELECT max(name) FROM customer WHERE age > 60 GROUP BY id",
)
WRONG = (
    "SELECT name FROM customer WHERE age > 59 AND city = 'Bern'",
    "SELECT name FROM customer WHERE age < 60",
    "SELECT name FROM customer WHERE age > 60 LIMIT 1",
    "SELECT name FROM customer WHERE age > 60 AND age > 66",
    "SELECT name, age FROM customer WHERE age > 60",
    "SELECT name FROM customer",
    "SELECT name FROM costumer WHERE age > 60",
    "SELECT name FROM customer WHERE age >> 60 >",
    "SELECT 'name' FROM customer WHERE age > 60",
    "DROP TABLE customer",
    "No query.",
    "",
)


@pytest.mark.parametrize("judged", [0.0, 0.5, 1.0])
@pytest.mark.parametrize("reference", RIGHT)
def test_no_wrong_query_is_above_a_right_one(path, judged, reference):
    task = shop_task(path, reference)
    for terms in (partial_credit(), reasoning_sql_rewards(ConstantJudge(judged))):
        right = rewards(terms, task, *RIGHT)
        tagged = [f"<reasoning>.</reasoning><answer>{query}</answer>" for query in WRONG]
        wrong = rewards(terms, task, *WRONG, *tagged)
        assert min(right) >= max(wrong) + 2


def test_a_right_query_in_other_words_has_the_full_credit(path):
    assert rewards(partial_credit(), shop_task(path, OLD), *RIGHT) == [6.0] * len(RIGHT)


def test_the_judge_is_asked_about_wrong_queries_alone(path):
    asked = []

    async def judge(task, rollouts):
        asked.extend(rollout.text for rollout in rollouts)
        return [0.5] * len(rollouts)

    reward = UnlessRight(judge)
    rollouts = [answer(RIGHT[1]), answer(WRONG[0])]
    assert asyncio.run(reward(shop_task(path, OLD), rollouts)) == [1.0, 0.5]
    assert asked == [WRONG[0]]


def test_partial_credit_above_1_fails_the_rollout(path):
    reward = UnlessRight(ConstantJudge(1.5))
    (value,) = asyncio.run(reward(shop_task(path, OLD), [answer(WRONG[0])]))
    assert str(value) == "partial credit: 1.5. Allowed: 0 to 1."


@pytest.mark.parametrize(
    ("query", "items"),
    [
        ("SELECT a, b FROM t", {"t", "t.a", "t.b"}),
        ("select A from T", {"t", "t.a"}),
        ("SELECT x.b FROM t AS x", {"t", "t.b"}),
        ("SELECT b, d FROM t JOIN u ON t.a = u.a", {"t", "u", "t.a", "u.a", "t.b", "u.d"}),
        ("SELECT * FROM u", {"u", "u.a", "u.d"}),
        ("SELECT count(*) FROM t", {"t"}),
        ("WITH w AS (SELECT a FROM t) SELECT w.a FROM w", {"t", "t.a"}),
        ("SELECT a FROM t WHERE EXISTS (SELECT 1 FROM u WHERE u.d = t.c)", None),
        ("SELECT z FROM t", {"t", "z"}),
        ("SELECT FROM WHERE", set()),
        ("SELECT LATERAL . CREATE LATERAL { LIMIT", set()),
        ("CREATE TABLE t (a, b)", set()),
        ("words", set()),
        ("", set()),
    ],
)
def test_schema_items(query, items):
    expected = {"t", "u", "t.a", "u.d", "t.c"} if items is None else items
    assert overlap.schema_items(query, COLUMNS) == expected


def test_texts_that_are_no_queries_log_nothing(caplog):
    for text in (
        "SELECT 1 EXPLAIN GROUP",
        "SELECT (EXECUTE FROM b)",
        "WITH a AS (SHOW x) SELECT 1",
    ):
        overlap.schema_items(text, COLUMNS)
    assert not caplog.records


def test_ngrams_are_those_of_tokens():
    found = overlap.token_ngrams("SELECT  a FROM t WHERE b='X';", 3)
    assert found == {
        ("select", "a", "from"),
        ("a", "from", "t"),
        ("from", "t", "where"),
        ("t", "where", "b"),
        ("where", "b", "="),
        ("b", "=", "'X'"),
    }
    assert overlap.token_ngrams("SELECT 'a", 2) == frozenset()


def test_overlaps_are_shares_of_the_union(path):
    task = shop_task(path, "SELECT name, city FROM customer")
    # items: {customer, name, age} and {customer, name, city}
    assert SchemaOverlap().score(task, answer("SELECT name, age FROM customer")) == 0.5
    # bigrams: select name | name from | from customer, and 5 of which 2 are the same
    assert NgramOverlap().score(task, answer("SELECT name FROM customer")) == 2 / 6


def test_hostile_queries_have_a_reward(path):
    texts = [
        "SELECT " + "(" * 5000,
        "SELECT '" * 3000,
        "SELECT " + "CASE WHEN " * 900,
        "\0",
        ";" * 9,
    ]
    found = rewards(partial_credit(), shop_task(path, OLD), *texts)
    assert all(0.0 <= reward < 1.0 for reward in found)


def test_a_lost_database_fails_the_rollout(path):
    env = SingleTurn(partial_credit())
    (result,) = asyncio.run(env.score(shop_task(path + ".gone", OLD), [answer(OLD)]))
    assert "is not a file. Allowed: a SQLite database." in result.error


def test_without_the_parser_partial_credit_is_refused(monkeypatch):
    monkeypatch.setitem(sys.modules, "sqlglot", None)
    monkeypatch.setitem(sys.modules, "sqlglot.optimizer", None)
    monkeypatch.setitem(sys.modules, "sqlglot.optimizer.scope", None)
    message = r'sqlglot is not installed. Install it: pip install "grupo\[sql\]"'
    with pytest.raises(ConfigError, match=message):
        SchemaOverlap().check()


def test_execution_alone_needs_no_parser(path, monkeypatch):
    monkeypatch.setitem(sys.modules, "sqlglot", None)
    assert SqlExecution().score(shop_task(path, OLD), answer(OLD)) == 1.0
