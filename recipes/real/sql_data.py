"""SQLite databases of real data, and questions about them whose answers are queries.

python recipes/real/sql_data.py FOLDER

writes the databases, with one table each and with several, and the tasks:

* `train.jsonl` and `held_out.jsonl`: SELECT … WHERE over one table; the tables of held_out.jsonl
  are in no question of train.jsonl.
* `joins_train.jsonl` and `joins_held_out.jsonl`: joins and groups over several tables; again the
  databases differ.
"""

import json
import sqlite3
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import closing
from pathlib import Path
from random import Random
from typing import Any

from grupo.envs.sql import database_at, schema_digest
from grupo.util.importing import load_module_file

TABLES: Any = load_module_file(Path(__file__).with_name("sql_tables.py"))
GROUPS = {
    "debian": (TABLES.PACKAGE, TABLES.DEPENDENCY, TABLES.MAINTAINER),
    "geography": (TABLES.COUNTRY, TABLES.REGION, TABLES.CURRENCY),
}
TRAINED_COUNT, HELD_OUT_COUNT, JOIN_COUNT = 2_000, 50, 200
MAX_ROWS = 5_000  # of a result
Question = tuple[str, str]


def text(value: str) -> str:
    """A text of SQL.

    >>> text("Côte d'Ivoire")
    "'Côte d''Ivoire'"
    """
    return "'" + value.replace("'", "''") + "'"


def value_of_a_row(table: Any, rows: Sequence[Any], rng: Random) -> Question:
    """Another column of the row that has a value."""
    key, other = rng.sample(range(len(table.columns)), 2)
    known, target = table.columns[key], table.columns[other]
    value = rng.choice(rows)[key]
    shown = text(value) if known.type == "TEXT" else str(value)
    return (
        f"What is the {target.phrase} of the {table.singular} with the {known.phrase} {value}?",
        f"SELECT {target.name} FROM {table.name} WHERE {known.name} = {shown}",
    )


def count_of_rows(table: Any, rows: Sequence[Any], rng: Random) -> Question:
    """The number of rows with a value."""
    place = rng.randrange(1, len(table.columns))
    column, value = table.columns[place], rng.choice(rows)[place]
    shown = text(value) if column.type == "TEXT" else str(value)
    return (
        f"How many {table.plural} have the {column.phrase} {value}?",
        f"SELECT COUNT(*) FROM {table.name} WHERE {column.name} = {shown}",
    )


def rows_beyond_a_number(table: Any, rows: Sequence[Any], rng: Random) -> Question:
    """A column of the rows whose number is above or below one; with no number, of all rows."""
    numbers = [i for i, column in enumerate(table.columns) if column.type == "INTEGER"]
    target = table.columns[rng.choice([i for i in range(len(table.columns)) if i not in numbers])]
    if not numbers:
        return (
            f"List the {target.phrase} of all {table.plural}.",
            f"SELECT {target.name} FROM {table.name}",
        )
    column, limit = table.columns[numbers[0]], rng.choice(rows)[numbers[0]]
    word, sign = rng.choice((("above", ">"), ("below", "<")))
    return (
        f"List the {target.phrase} of all {table.plural} with a {column.phrase} {word} {limit}.",
        f"SELECT {target.name} FROM {table.name} WHERE {column.name} {sign} {limit}",
    )


def rows_with_a_beginning(table: Any, rows: Sequence[Any], rng: Random) -> Question:
    """The names that begin with a letter."""
    name, letter = table.columns[0], rng.choice(rows)[0][0]
    return (
        f"List the {name.phrase} of all {table.plural} whose {name.phrase} begins with {letter}.",
        f"SELECT {name.name} FROM {table.name} WHERE {name.name} LIKE {text(letter + '%')}",
    )


SHAPES = (value_of_a_row, count_of_rows, rows_beyond_a_number, rows_with_a_beginning)


def debian_joins(rng: Random, connection: sqlite3.Connection) -> Iterator[Question]:
    """Questions about packages, what they need, and who maintains them."""
    (section,) = choose(connection, "SELECT DISTINCT section FROM package", rng)
    (needed,) = choose(connection, "SELECT DISTINCT needs FROM dependency", rng)
    (person,) = choose(connection, "SELECT DISTINCT name FROM maintainer", rng)
    yield (
        f"List the size of all packages that {person} maintains.",
        "SELECT p.size FROM package p JOIN maintainer m ON m.package = p.name"
        f" WHERE m.name = {text(person)}",
    )
    yield (
        f"List the name and the section of all packages that need {needed}.",
        "SELECT p.name, p.section FROM package p JOIN dependency d ON d.package = p.name"
        f" WHERE d.needs = {text(needed)}",
    )
    yield (
        f"How many packages does each package of the section {section} need?",
        "SELECT p.name, COUNT(*) FROM package p JOIN dependency d ON d.package = p.name"
        f" WHERE p.section = {text(section)} GROUP BY p.name",
    )
    yield (
        f"What is the total size of the packages that {person} maintains, by section?",
        "SELECT p.section, SUM(p.size) FROM package p JOIN maintainer m ON m.package = p.name"
        f" WHERE m.name = {text(person)} GROUP BY p.section",
    )


def geography_joins(rng: Random, connection: sqlite3.Connection) -> Iterator[Question]:
    """Questions about countries and their regions."""
    name, number = choose(connection, "SELECT name, number FROM country", rng)
    (kind,) = choose(connection, "SELECT DISTINCT type FROM region", rng)
    join = "FROM region r JOIN country c ON c.code = r.country"
    yield (
        f"List the names of the regions of {name}.",
        f"SELECT r.name {join} WHERE c.name = {text(name)}",
    )
    yield (
        f"List the name and the number of regions of each country with a number below {number}.",
        f"SELECT c.name, COUNT(*) {join} WHERE c.number < {number} GROUP BY c.code, c.name",
    )
    yield (
        f"List the name of each country that has a region of the type {kind}, once.",
        f"SELECT DISTINCT c.name {join} WHERE r.type = {text(kind)}",
    )
    yield (
        f"How many regions of each type does {name} have?",
        f"SELECT r.type, COUNT(*) {join} WHERE c.name = {text(name)} GROUP BY r.type",
    )


JOINS: dict[str, Callable[[Random, sqlite3.Connection], Iterator[Question]]] = {
    "debian": debian_joins,
    "geography": geography_joins,
}


def choose(connection: sqlite3.Connection, query: str, rng: Random) -> Any:
    """One row of a query's result."""
    return rng.choice(sorted(connection.execute(query).fetchall()))


def write_database(path: Path, tables: Iterable[Any]) -> None:
    """Write a new database with some tables."""
    path.unlink(missing_ok=True)
    with closing(sqlite3.connect(path)) as connection, connection:
        for table in tables:
            connection.execute(table.statement)
            slots = ", ".join("?" * len(table.columns))
            connection.executemany(f"INSERT INTO {table.name} VALUES ({slots})", table.rows())


def table_questions(tables: Sequence[Any], seed: str) -> Iterator[tuple[str, Question]]:
    """Endless questions over one table each, with the name of the database."""
    rng = Random(seed)
    rows = {table.name: table.rows() for table in tables}
    while True:
        table, shape = rng.choice(tables), rng.choice(SHAPES)
        yield table.name, shape(table, rows[table.name], rng)


def join_questions(folder: Path, name: str) -> Iterator[tuple[str, Question]]:
    """Endless questions over the tables of one database."""
    rng = Random(name)
    with closing(sqlite3.connect(folder / f"{name}.sqlite")) as connection:
        while True:
            for question in JOINS[name](rng, connection):
                yield name, question


def write_tasks(folder: Path, name: str, count: int, questions: Iterator[Any]) -> None:
    """Write the first distinct questions that have an answer of 1 to `MAX_ROWS` rows."""
    lines: dict[str, str] = {}
    while len(lines) < count:
        database, (question, query) = next(questions)
        if question in lines or not has_some_rows(folder / f"{database}.sqlite", query):
            continue
        path = folder / f"{database}.sqlite"
        task = {
            "prompt": question,
            "answer": query,
            "database": path.name,
            "schema": schema_digest(database_at(str(path))),
        }
        lines[question] = json.dumps(task, ensure_ascii=False)
    (folder / name).write_text("".join(f"{line}\n" for line in lines.values()), encoding="utf-8")


def has_some_rows(path: Path, query: str) -> bool:
    """True if the result has 1 to `MAX_ROWS` rows."""
    with closing(sqlite3.connect(path)) as connection:
        return 0 < len(connection.execute(query).fetchmany(MAX_ROWS + 1)) <= MAX_ROWS


def write_all(folder: Path) -> None:
    """Write the databases and the four files of tasks."""
    folder.mkdir(parents=True, exist_ok=True)
    for table in (*TABLES.TRAINED, *TABLES.HELD_OUT):
        write_database(folder / f"{table.name}.sqlite", [table])
    for name, tables in GROUPS.items():
        write_database(folder / f"{name}.sqlite", tables)
    trained, held_out = TABLES.TRAINED, TABLES.HELD_OUT
    write_tasks(folder, "train.jsonl", TRAINED_COUNT, table_questions(trained, "train"))
    write_tasks(folder, "held_out.jsonl", HELD_OUT_COUNT, table_questions(held_out, "held out"))
    write_tasks(folder, "joins_train.jsonl", JOIN_COUNT, join_questions(folder, "debian"))
    write_tasks(folder, "joins_held_out.jsonl", JOIN_COUNT, join_questions(folder, "geography"))


if __name__ == "__main__":
    write_all(Path(sys.argv[1]))
