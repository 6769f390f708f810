"""Tables in memory as tasks: the same tasks, rules and errors as those of files."""

import json

import numpy as np
import pandas as pd
import pytest
from datasets import Dataset, DatasetDict

from grupo.core.types import Task
from grupo.tasks import Columns, DatasetTasks, InMemoryTasks, TaskMixture, split_tasks
from grupo.toy.quickstart import RECIPE
from grupo.util.errors import ConfigError
from grupo.util.limits import TASK_ROWS

ROWS = [
    {"prompt": f"{i} + 1 =", "answer": str(i + 1), "level": i, "source": "sums"} for i in range(12)
]
CHAT = [{"prompt": [{"role": "user", "content": "2 + 2 ="}], "answer": "4"}]
KINDS = {"list": list, "tuple": tuple, "Dataset": Dataset.from_list, "DataFrame": pd.DataFrame}


@pytest.fixture(params=KINDS.values(), ids=KINDS)
def table(request):
    """Makes a table of one kind from rows."""
    return request.param


@pytest.mark.parametrize("rows", [ROWS, CHAT], ids=["text", "chat"])
def test_a_table_in_memory_has_the_tasks_of_a_file(table, rows, tmp_path):
    (tmp_path / "rows.jsonl").write_text("\n".join(map(json.dumps, rows)))
    from_file = DatasetTasks(str(tmp_path / "rows.jsonl")).load()
    tasks = RECIPE.replace(tasks=table(rows)).tasks.load()
    for task, expected in zip(tasks, from_file, strict=True):
        assert (task.key, task.prompt) == (expected.key, expected.prompt)
        assert (task.reference_answer, task.columns) == (
            expected.reference_answer,
            expected.columns,
        )


def test_tasks_are_located_by_their_row(table):
    assert InMemoryTasks(table(ROWS)).load()[2].location == "tasks, row 3"


def test_other_columns_are_named(table):
    rows = [{"question": row["prompt"], "solution": row["answer"]} for row in ROWS]
    tasks = InMemoryTasks(table(rows), Columns(prompt="question", answer="solution")).load()
    assert (tasks[1].prompt, tasks[1].reference_answer) == ("1 + 1 =", "2")


def test_evaluation_tasks_may_be_a_table(table):
    recipe = RECIPE.replace(tasks=table(ROWS), eval_tasks=table(ROWS[:3]))
    train, evaluation = split_tasks(recipe.tasks, recipe.eval_tasks)
    assert (len(train), len(evaluation)) == (9, 3)


def test_a_mixture_takes_tables(table):
    tasks = TaskMixture(((table(ROWS[:1]), 1.0), (table(CHAT), 1.0)), size=20).load()
    assert {str(task.prompt)[:3] for task in tasks} == {"0 +", "({'"}


def test_a_list_of_tasks_is_taken_as_it_is():
    tasks = InMemoryTasks([Task("a", "1 + 1 =", "2")])
    assert tasks.load() == [Task("a", "1 + 1 =", "2")]
    assert tasks.description == "a list of 1 task"


def test_missing_values_of_a_data_frame_are_none():
    frame = pd.DataFrame({"prompt": ["a", "b"], "answer": [1.0, None], "level": [np.nan, 2]})
    first, second = InMemoryTasks(frame).load()
    assert (first.reference_answer, first.columns["level"]) == (1.0, None)
    assert (second.reference_answer, second.columns["level"]) == (None, 2.0)


def test_tables_are_described_by_type_rows_and_columns(table):
    description = InMemoryTasks(table(ROWS)).description
    assert description.endswith(" of 12 rows with the columns prompt, answer, level, source")
    assert type(table(ROWS)).__name__ in description


def test_the_remedy_names_the_method_that_writes_the_table():
    remedies = {name: InMemoryTasks(make(ROWS)).remedy for name, make in KINDS.items()}
    assert "dataset.save_to_disk('tasks')" in remedies["Dataset"]
    assert "frame.to_parquet('tasks.parquet')" in remedies["DataFrame"]
    assert "DatasetTasks('tasks.parquet')" in remedies["DataFrame"]
    assert "Dataset.from_list(rows).save_to_disk('tasks')" in remedies["list"]


ITERABLE = Dataset.from_list(ROWS).to_iterable_dataset()
BAD_TABLES = {
    "generator": ((row for row in ROWS), "tasks: an object of type generator. .* write list"),
    "dict": ({"prompt": ["a"]}, r"tasks: an object of type dict\. Write Dataset.from_dict"),
    "path": ("rows.jsonl", r"tasks: 'rows.jsonl' is a str\. .* is DatasetTasks\('rows.jsonl'\)"),
    "number": (5, "tasks: an object of type int. Allowed: a Dataset, a DataFrame, a list"),
    "class": (Dataset, "tasks: an object of type type. Allowed: a Dataset"),
    "splits": (DatasetDict(train=Dataset.from_list(ROWS)), r"such as dataset\['train'\]"),
    "stream": (ITERABLE, r"no number of rows .*list\(dataset.take\(10_000\)\)"),
    "series": (pd.Series(["a"]), r"Use series.to_frame\('prompt'\)"),
    "twice": (pd.DataFrame([[1, 2]], columns=["a", "a"]), "two columns are named 'a'"),
}


@pytest.mark.parametrize(("rows", "message"), BAD_TABLES.values(), ids=BAD_TABLES)
def test_objects_that_are_no_tables_are_refused_with_what_to_write(rows, message):
    with pytest.raises(ConfigError, match=message):
        RECIPE.replace(tasks=rows)


def test_the_field_is_named():
    with pytest.raises(ConfigError, match=r"^eval_tasks: 'rows\.jsonl' is a str"):
        RECIPE.replace(eval_tasks="rows.jsonl")


BAD_ROWS = {
    "empty": ([], "tasks has no rows"),
    "no prompt": ([{"question": "a"}], "tasks, row 1 has no column 'prompt'"),
    "number": ([*ROWS, 3], "tasks, row 13 is a int. Allowed: a mapping"),
    "empty prompt": ([{"prompt": " "}], "tasks, row 1, column 'prompt' is ' '"),
    "column": ([{"prompt": "a", 3: 1}], "tasks, row 1 has the column 3. Allowed: a string"),
    "mixed": ([ROWS[0], Task("a", "b")], "tasks, row 2 is a Task. Allowed: a mapping"),
}


@pytest.mark.parametrize(("rows", "message"), BAD_ROWS.values(), ids=BAD_ROWS)
def test_malformed_rows_are_refused_with_their_place(rows, message):
    with pytest.raises(ConfigError, match=message):
        RECIPE.replace(tasks=rows).tasks.load()


def test_the_number_of_rows_is_limited_as_in_files(monkeypatch):
    limit = type(TASK_ROWS)(**{**vars(TASK_ROWS), "maximum": 5})
    monkeypatch.setattr("grupo.tasks.tables.base.TASK_ROWS", limit)
    with pytest.raises(ConfigError, match="tasks has 12 rows"):
        InMemoryTasks(ROWS)
