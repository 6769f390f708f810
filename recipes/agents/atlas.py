"""A small model learns with GRPO to ask a database what it was asked, in minutes: docs/agents.md.

python recipes/agents/apprentice.py recipes/agents/atlas.py
grupo train recipes/agents/atlas.py:RECIPE
"""

import sqlite3
from contextlib import closing
from pathlib import Path

from grupo import Adam, CausalLM, Evaluation, Linear, Recipe, Solved, Warmup
from grupo.core.rng import generator
from grupo.envs.tools import Sql
from grupo.methods.grpo import grpo
from grupo.toy.tool_use import Errands, Trade, asking, taught

FILE = Path(".grupo/atlas.db")
SQL = Sql(str(FILE))
NUMBERS = tuple(map(str, range(10, 100, 10)))
NAMES = (
    "Ada",
    "Bor",
    "Cal",
    "Dun",
    "Elm",
    "Fir",
    "Gor",
    "Hay",
    "Ida",
    "Jon",
    "Kim",
    "Lea",
)
ORDERS = {"largest": "DESC", "smallest": "ASC"}
COLUMNS, TABLES = ("height", "length", "width", "area"), ("lakes", "rivers", "towns", "hills")
CONDITIONS = {
    "older": "age >",
    "younger": "age <",
    "deeper": "depth >",
    "shallower": "depth <",
    "farther": "distance >",
    "nearer": "distance <",
}


def question(condition: str, order: str, column: str, table: str, number: str) -> str:
    """What is asked.

    >>> question("older", "largest", "height", "lakes", "70")
    'which of the lakes older than 70 has the largest height?'
    """
    return f"which of the {table} {condition} than {number} has the {order} {column}?"


def query(condition: str, order: str, column: str, table: str, number: str) -> str:
    """What finds the answer.

    >>> query("older", "largest", "height", "lakes", "70")
    'SELECT name FROM lakes WHERE age > 70 ORDER BY height DESC LIMIT 1'
    """
    some = f"{table} WHERE {CONDITIONS[condition]} {number}" if condition else table
    return f"SELECT name FROM {some} ORDER BY {column} {ORDERS[order]} LIMIT 1"


def found(text: str) -> str:
    """What the atlas says to a query."""
    draw()
    return SQL(text).splitlines()[-1]


def told(name: str) -> str:
    """How a name is told: below the name of its column."""
    return f"name\n{name}"


def draw(rows: int = 10) -> None:
    """Write the atlas, unless it is there: all its numbers are from 10 to 99, none twice."""
    if FILE.exists():
        return
    FILE.parent.mkdir(parents=True, exist_ok=True)
    columns = (*COLUMNS, "age", "depth", "distance")
    with closing(sqlite3.connect(FILE)) as opened, opened:
        for table in TABLES:
            rng, asked = generator(0, "atlas", table), "?, " * len(columns) + "?"
            opened.execute(f"CREATE TABLE {table} (name, {', '.join(columns)})")
            numbers = (rng.sample(range(10, 100), rows) for _ in columns)
            drawn = zip(rng.sample(NAMES, rows), *numbers, strict=True)
            opened.executemany(f"INSERT INTO {table} VALUES ({asked})", drawn)


CHOICES = (tuple(CONDITIONS), tuple(ORDERS), COLUMNS, TABLES, NUMBERS)
TRADE = Trade("sql", "query", CHOICES, NAMES, question, query, found, told)
BEGINNER = taught("atlas-beginner", TRADE, SQL, each=4)
RECIPE = Recipe(
    policy=CausalLM(str(BEGINNER.home), limit=40, chat=True, budget=16384),
    env=asking(SQL),
    tasks=BEGINNER.tasks,
    held_out=Errands(TRADE, held_out=True, each=3),
    method=grpo(group=8, kl=0.0),
    steps=60,
    prompts=8,
    lr=Warmup(0.05, Linear(1e-3, 1e-4)),
    optimizer=Adam(),
    evaluation=Evaluation(attempts=4, solved=Solved("correct")),
)
