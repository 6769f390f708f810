"""A small shop as a SQLite database, and tasks about it."""

import sqlite3
from contextlib import closing
from pathlib import Path

from grupo.core.types import Response, Rollout, Task

SCHEMA = """\
CREATE TABLE customer (id INTEGER PRIMARY KEY, name TEXT, city TEXT, age INTEGER);
CREATE TABLE product (id INTEGER PRIMARY KEY, name TEXT, price REAL, note TEXT);
CREATE TABLE sale (id INTEGER PRIMARY KEY, customer INTEGER, product INTEGER, count INTEGER);
"""
CITIES = ("Bern", "Chur", "Genf", "Basel")


def write_shop(path: Path) -> str:
    """Write the database: 40 customers, 20 products, of which some have no note, and 90 sales."""
    customers = [(i, f"Customer {i}", CITIES[i * i % 4], 20 + 7 * i % 50) for i in range(40)]
    products = [
        (i, f"Product {i}", 2.5 + 1.3 * (i * 7 % 20), None if i % 3 else f"note {i}")
        for i in range(20)
    ]
    sales = [(i, i * 11 % 40, i * 7 % 20, 1 + i % 4) for i in range(90)]
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.executescript(SCHEMA)
        connection.executemany("INSERT INTO customer VALUES (?, ?, ?, ?)", customers)
        connection.executemany("INSERT INTO product VALUES (?, ?, ?, ?)", products)
        connection.executemany("INSERT INTO sale VALUES (?, ?, ?, ?)", sales)
    return str(path)


def shop_task(path: str, reference: str) -> Task:
    """A task whose reference answer is a query, as the environment gives it to the rewards."""
    columns = {"database": path}
    return Task("k", "Which?", reference, columns=columns, location="questions.jsonl, line 2")


def answer(text: str) -> Rollout:
    """A rollout with one answer."""
    return Rollout((("?", Response((1,), (0.0,), text=text)),))
