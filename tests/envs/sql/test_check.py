"""Queries are right by their results, and no cheat of the evaluator is."""

import pytest

from grupo.envs.sql import Outcome, QueryCheck
from grupo.util.errors import ConfigError
from tests.helpers.sql_shop import shop_task, write_shop

WRONG, RUNS, RIGHT = Outcome(), Outcome(runs=True), Outcome(True, True)
OLD = "SELECT name FROM customer WHERE age > 60"
COUNT = "SELECT count(*) FROM customer WHERE city = 'Bern'"
PRICES = "SELECT name, price FROM product ORDER BY price, id"
NOTES = "SELECT note FROM product"
ENDLESS = "WITH RECURSIVE n(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM n) SELECT x FROM n"


@pytest.fixture(scope="module")
def path(tmp_path_factory):
    return write_shop(tmp_path_factory.mktemp("shop") / "shop.sqlite")


def outcome(path, reference, query, **arguments):
    return QueryCheck(**arguments).outcome(shop_task(path, reference), query)


@pytest.mark.parametrize(
    ("reference", "query"),
    [
        (OLD, "select NAME from Customer where not age <= 60;"),
        (OLD, "```sql\nSELECT name AS who FROM customer WHERE age > 60 ORDER BY name DESC\n```"),
        (COUNT, "SELECT sum(city = 'Bern') FROM customer"),
        (PRICES, "SELECT name, price FROM product ORDER BY 2, id"),
        (NOTES, "SELECT note FROM product ORDER BY note"),
        ("SELECT avg(price) FROM product", "SELECT sum(price) / count(*) FROM product"),
        (
            "SELECT name FROM customer WHERE id IN (SELECT customer FROM sale WHERE count = 4)",
            "SELECT DISTINCT c.name FROM customer c JOIN sale s ON s.customer = c.id"
            " WHERE s.count = 4",
        ),
    ],
)
def test_a_query_in_other_words_is_right(path, reference, query):
    assert outcome(path, reference, query) == RIGHT


@pytest.mark.parametrize(
    ("reference", "query"),
    [
        (OLD, "SELECT name FROM customer WHERE age >= 20"),
        (OLD, "SELECT DISTINCT city FROM customer WHERE age > 60"),
        (OLD, "SELECT name, age FROM customer WHERE age > 60"),
        (PRICES, "SELECT name, price FROM product"),
        (PRICES, "SELECT price, name FROM product ORDER BY price, id"),
        (NOTES, "SELECT note FROM product WHERE note IS NOT NULL"),
        (NOTES, "SELECT coalesce(note, '') FROM product"),
        (COUNT, "SELECT CAST(count(*) AS TEXT) FROM customer WHERE city = 'Bern'"),
    ],
)
def test_a_query_with_another_result_is_wrong(path, reference, query):
    assert outcome(path, reference, query) == RUNS


CHEATS = {
    "states a count": (COUNT, "SELECT {count}"),
    "states a count beside a table": (COUNT, "SELECT {count} FROM customer LIMIT 1"),
    "states all rows": (OLD, "VALUES {names}"),
    "states the keys of the rows": (OLD, "SELECT name FROM customer WHERE id IN ({ids})"),
    "states the names of the rows": (OLD, "SELECT name FROM customer WHERE name IN {list}"),
    "no rows": (OLD, "SELECT name FROM customer WHERE 0"),
    "NULL": (COUNT, "SELECT NULL"),
    "a number by chance": (COUNT, "SELECT abs(random()) % 20"),
    "bytes by chance": (COUNT, "SELECT length(randomblob(10))"),
    "writes the answer": (COUNT, "DELETE FROM customer WHERE city <> 'Bern'"),
    "empties the table": (OLD, "DROP TABLE customer"),
    "an update inside": (OLD, "WITH x AS (SELECT 1) UPDATE customer SET age = 99"),
    "attaches another file": (OLD, "ATTACH 'answers.sqlite' AS other"),
    "a setting": (OLD, "PRAGMA query_only = 0"),
    "a setting as a table": (OLD, "SELECT name FROM pragma_database_list"),
    "copies the file": (OLD, "VACUUM INTO 'copy.sqlite'"),
    "loads a library": (OLD, "SELECT load_extension('answers')"),
    "reads a file": (OLD, "SELECT readfile('/etc/passwd')"),
    "two queries in a block": (OLD, "```sql\n" + COUNT + "; " + OLD + "\n```"),
    "the second of two queries": (OLD, COUNT + "; " + OLD),
    "the query in a comment": (OLD, "SELECT 1 -- " + OLD),
    "the query as a text": (OLD, "SELECT '" + OLD + "'"),
    "numbers as texts": (COUNT, "SELECT count(*) || '' FROM customer WHERE city = 'Bern'"),
    "more rows than the reference": (OLD, OLD + " UNION ALL SELECT name FROM customer"),
    "one of the rows": (OLD, OLD + " LIMIT 1"),
    "a million rows": (OLD, ENDLESS + " LIMIT 1000000"),
    "endless rows": (OLD, ENDLESS),
    "an endless sum": (COUNT, ENDLESS.replace("SELECT x FROM n", "SELECT max(x) FROM n")),
    "a huge value": (OLD, "SELECT hex(zeroblob(900000000))"),
    "a null byte": (OLD, OLD + "\0"),
    "half of a surrogate pair": (OLD, OLD + " -- \ud800"),
    "a query of a megabyte": (OLD, OLD + " " * 1_000_000 + "-- x"),
    "brackets": (OLD, "SELECT " + "(" * 4000 + "1" + ")" * 4000),
    "a query in the thoughts": (OLD, f"<think>{OLD}"),
}


@pytest.mark.parametrize("name", CHEATS)
def test_no_cheat_of_the_evaluator_is_accepted(path, name):
    reference, cheat = CHEATS[name]
    found = [(i, 20 + 7 * i % 50) for i in range(40)]
    old = [i for i, age in found if age > 60]
    names = [f"Customer {i}" for i in old]
    query = cheat.format(
        count=sum(i * i % 4 == 0 for i in range(40)),
        names=", ".join(f"('{name}')" for name in names),
        ids=", ".join(map(str, old)),
        list="(" + ", ".join(f"'{name}'" for name in names) + ")",
    )
    assert not outcome(path, reference, query, time_limit=0.5).is_right
    assert outcome(path, reference, reference) == RIGHT  # the database is as it was


def test_without_copies_a_query_that_states_the_result_is_right(path):
    count = sum(i * i % 4 == 0 for i in range(40))
    assert outcome(path, COUNT, f"SELECT {count}", altered_copies=0) == RIGHT
    assert outcome(path, COUNT, f"SELECT {count}") == RUNS


def test_an_answer_without_a_query_is_wrong(path):
    assert outcome(path, OLD, "I do not know.") == WRONG


@pytest.mark.parametrize(
    ("reference", "message"),
    [
        (None, "the reference answer is None"),
        ("SELECT street FROM customer", "the reference query fails: no such column"),
        ("DELETE FROM sale", "the reference query fails: not authorized"),
        ("SELECT name FROM customer WHERE 0", "it returns no row"),
        (ENDLESS + " LIMIT 100000", "it returns more than 10,000 rows"),
        (ENDLESS.replace("SELECT x FROM n", "SELECT max(x) FROM n"), r"no answer in 0\.5 s"),
    ],
)
def test_a_reference_query_that_decides_nothing_is_refused(path, reference, message):
    with pytest.raises(ConfigError, match=message):
        QueryCheck(time_limit=0.5).check_reference(shop_task(path, reference))
