"""GRPO teaches a toy model to answer questions by SQL queries, in minutes: docs/agents.md.

python recipes/agents/tool_base_model.py recipes/agents/sql_tool.py
grupo train recipes/agents/sql_tool.py:RECIPE
"""

import sqlite3
from contextlib import closing
from pathlib import Path

from grupo import Adam, CausalLM, Evaluation, Linear, Recipe, SuccessCriterion, Warmup
from grupo.envs.tools import Sql
from grupo.methods.grpo import grpo
from grupo.toy.tool_use import ToolTaskFamily, ToolTasks, tool_env, tool_use_model
from grupo.util.rng import make_rng

DATABASE_PATH = Path(".grupo/atlas.db")
SQL_TOOL = Sql(str(DATABASE_PATH))
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
SQL_ORDERS = {"largest": "DESC", "smallest": "ASC"}
COLUMNS, TABLES = ("height", "length", "width", "area"), ("lakes", "rivers", "towns", "hills")
SQL_CONDITIONS = {
    "older": "age >",
    "younger": "age <",
    "deeper": "depth >",
    "shallower": "depth <",
    "farther": "distance >",
    "nearer": "distance <",
}


def question(condition: str, order: str, column: str, table: str, number: str) -> str:
    """The question of a task.

    >>> question("older", "largest", "height", "lakes", "70")
    'which of the lakes older than 70 has the largest height?'
    """
    return f"which of the {table} {condition} than {number} has the {order} {column}?"


def query(condition: str, order: str, column: str, table: str, number: str) -> str:
    """The query that answers the question; without the condition if it is empty.

    >>> query("older", "largest", "height", "lakes", "70")
    'SELECT name FROM lakes WHERE age > 70 ORDER BY height DESC LIMIT 1'
    """
    rows = f"{table} WHERE {SQL_CONDITIONS[condition]} {number}" if condition else table
    return f"SELECT name FROM {rows} ORDER BY {column} {SQL_ORDERS[order]} LIMIT 1"


def run_query(text: str) -> str:
    """The answer of a query: the last line of the tool's output."""
    write_database()
    return SQL_TOOL(text).splitlines()[-1]


def format_result(name: str) -> str:
    """The tool's output for a name: a header and the name."""
    return f"name\n{name}"


def write_database(rows_per_table: int = 10) -> None:
    """Write the database unless it exists; a column has distinct numbers from 10 to 99."""
    if DATABASE_PATH.exists():
        return
    DATABASE_PATH.parent.mkdir(parents=True, exist_ok=True)
    columns = (*COLUMNS, "age", "depth", "distance")
    with closing(sqlite3.connect(DATABASE_PATH)) as connection, connection:
        for table in TABLES:
            rng, placeholders = make_rng(0, "atlas", table), "?, " * len(columns) + "?"
            connection.execute(f"CREATE TABLE {table} (name, {', '.join(columns)})")
            numbers = (rng.sample(range(10, 100), rows_per_table) for _ in columns)
            rows = zip(rng.sample(NAMES, rows_per_table), *numbers, strict=True)
            connection.executemany(f"INSERT INTO {table} VALUES ({placeholders})", rows)


CHOICES = (tuple(SQL_CONDITIONS), tuple(SQL_ORDERS), COLUMNS, TABLES, NUMBERS)
TASK_FAMILY = ToolTaskFamily(
    "sql", "query", CHOICES, NAMES, question, query, run_query, format_result
)
BASE_MODEL = tool_use_model("sql-tool-base-model", TASK_FAMILY, SQL_TOOL, tasks_per_combination=4)
RECIPE = Recipe(
    policy=CausalLM(
        str(BASE_MODEL.model_dir),
        max_new_tokens=40,
        apply_chat_template=True,
        tokens_per_microbatch=16384,
    ),
    env=tool_env(SQL_TOOL),
    tasks=BASE_MODEL.tasks,
    eval_tasks=ToolTasks(TASK_FAMILY, held_out=True, tasks_per_combination=3),
    method=grpo(group_size=8, kl_coef=0.0),
    max_steps=60,
    prompts_per_step=8,
    learning_rate=Warmup(0.05, Linear(1e-3, 1e-4)),
    optimizer=Adam(),
    evaluation=Evaluation(attempts=4, success=SuccessCriterion("correct")),
)
