"""A small model learns with GRPO to ask a database what it was asked, in minutes: docs/agents.md.

python recipes/agents/apprentice.py recipes/agents/atlas.py
grupo train recipes/agents/atlas.py:RECIPE
"""

import sqlite3
from contextlib import closing
from pathlib import Path

from grupo import Adam, CausalLM, Evaluation, Linear, Recipe, Solved, Warmup
from grupo.envs.tools import Sql
from grupo.grow.errands import NUMBERS, Errands, Trade, asking, taught
from grupo.methods.grpo import grpo
from grupo.randomness import generator

FILE = Path(".grupo/atlas.db")
SQL = Sql(str(FILE))
WHAT = {"largest": "MAX", "smallest": "MIN", "total": "SUM"}
COLUMNS, TABLES = ("height", "length", "width", "area"), ("lakes", "rivers", "towns", "hills")
CONDITIONS = {
    "older": "age >",
    "younger": "age <",
    "deeper": "depth >",
    "shallower": "depth <",
    "farther": "distance >",
    "nearer": "distance <",
}


def question(condition: str, what: str, column: str, table: str, number: str) -> str:
    """What is asked.

    >>> question("older", "total", "height", "lakes", "37")
    'total height of the lakes older than 37?'
    """
    return f"{what} {column} of the {table} {condition} than {number}?"


def query(condition: str, what: str, column: str, table: str, number: str) -> str:
    """What finds the answer.

    >>> query("older", "total", "height", "lakes", "37")
    'SELECT SUM(height) FROM lakes WHERE age > 37'
    """
    asked = f"SELECT {WHAT[what]}({column}) FROM {table}"
    return f"{asked} WHERE {CONDITIONS[condition]} {number}" if condition else asked


def found(text: str) -> str:
    """What the atlas says to a query."""
    draw()
    return SQL(text).splitlines()[-1]


def told(text: str, number: int) -> str:
    """How a number is told: below the name of its column.

    >>> told("SELECT SUM(height) FROM lakes", 12)
    'SUM(height)\\n12'
    """
    return f"{text.split()[1]}\n{number}"


def draw(rows: int = 10) -> None:
    """Write the atlas, unless it is there: sizes are 1 to 30, all else is 1 to 99."""
    if FILE.exists():
        return
    FILE.parent.mkdir(parents=True, exist_ok=True)
    columns = dict.fromkeys(COLUMNS, 30) | {"age": 99, "depth": 99, "distance": 99}
    with closing(sqlite3.connect(FILE)) as opened, opened:
        for table in TABLES:
            opened.execute(f"CREATE TABLE {table} ({', '.join(f'{c} INT' for c in columns)})")
            rng, asked = generator(0, "atlas", table), ", ".join("?" * len(columns))
            drawn = [[rng.randint(1, most) for most in columns.values()] for _ in range(rows)]
            opened.executemany(f"INSERT INTO {table} VALUES ({asked})", drawn)


CHOICES = (tuple(CONDITIONS), tuple(WHAT), COLUMNS, TABLES, NUMBERS[10::10])
TRADE = Trade("sql", "query", CHOICES, question, query, found, told)
BEGINNER = taught("atlas-beginner", TRADE, SQL, each=4)
RECIPE = Recipe(
    policy=CausalLM(str(BEGINNER.home), limit=40, chat=True, budget=16384),
    env=asking(SQL),
    tasks=BEGINNER.tasks,
    held_out=Errands(TRADE, held_out=True, each=2),
    method=grpo(group=8, kl=0.0),
    steps=60,
    prompts=8,
    lr=Warmup(0.05, Linear(1e-3, 1e-4)),
    optimizer=Adam(),
    evaluation=Evaluation(attempts=4, solved=Solved("correct")),
)
