"""Surveys of tasks, and tasks that are selected by them."""

import json
import math
from pathlib import Path

import pytest
from pyarrow import parquet

from grupo.core.serialization import from_data, to_data
from grupo.core.types import Group, Response, Rollout, Task
from grupo.evidence.survey import TaskSurvey, survey_tasks, write_survey
from grupo.evidence.survey.measure import task_survey
from grupo.evidence.survey.parquet import METADATA, check_new_file
from grupo.evidence.survey.table import survey_table
from grupo.methods.grpo import grpo
from grupo.tasks import (
    Between,
    FromFunction,
    Highest,
    InMemoryTasks,
    Lowest,
    Selected,
    ThinnedAbove,
)
from grupo.testing.smoke.echo_env import EchoEnv, EchoTasks
from grupo.testing.smoke.run import echo_recipe
from grupo.util.errors import ConfigError

ROWS = [{"prompt": f"{i} + 1 =", "answer": str(i + 1)} for i in range(4)]


def rollout(reward: float, *logp: float, error: str = "", reason: str = "end") -> Rollout:
    response = Response((1,) * len(logp), logp, finish_reason=reason)
    return Rollout((("2 + 2 =", response),), reward=reward, error=error)


def solved(attempt: Rollout) -> bool:
    return attempt.reward >= 1


def test_statistics_of_a_task():
    rollouts = (
        rollout(1.0, -0.5, -1.5),
        rollout(0.0, -1.0, reason="length"),
        rollout(0.5, -1.0, -2.0, -3.0),
        rollout(math.nan, -1.0, -1.0, error="no number"),
    )
    task = Task("k", "2 + 2 =", source="sums", location="a.jsonl, line 3")
    row = task_survey(Group(task, rollouts), solved)
    assert row == TaskSurvey(
        key="k",
        source="sums",
        location="a.jsonl, line 3",
        attempts=4,
        failed=1,
        pass_rate=pytest.approx(1 / 3),
        reward_mean=pytest.approx(0.5),
        reward_std=pytest.approx(math.sqrt((0.25 + 0.25 + 0) / 3)),
        length_mean=2.0,  # (2 + 1 + 3 + 2) / 4
        length_max=3,
        truncated_frac=0.25,
        entropy=pytest.approx(11 / 8),  # (2 + 1 + 6 + 2) / 8
    )


def test_numbers_without_a_scored_attempt_are_null(tmp_path):
    row = task_survey(Group(Task("k", ""), (rollout(math.nan, -1.0, error="broken"),)), solved)
    file = tmp_path / "survey.parquet"
    write_survey(file, [[row]], {})
    (written,) = parquet.read_table(file).to_pylist()
    assert (written["pass_rate"], written["reward_mean"], written["reward_std"]) == (None,) * 3
    assert (written["failed"], written["length_max"]) == (1, 1)


@pytest.mark.slow
def test_a_survey_attempts_each_task_with_the_policy(tmp_path):
    recipe = echo_recipe(grpo())
    policy = recipe.policy.build()
    tasks = EchoTasks().load()
    file = tmp_path / "survey.parquet"
    facts = {"policy": "tiny", "attempts": 4}
    rows = write_survey(file, survey_tasks(policy, EchoEnv(), tasks, attempts=4, key=3), facts)
    table = parquet.read_table(file)
    assert table["key"].to_pylist() == [task.key for task in tasks]
    assert json.loads(table.schema.metadata[METADATA]) == facts
    (again,) = survey_tasks(policy, EchoEnv(), tasks, attempts=4, key=3)
    assert again == rows
    (fewer,) = survey_tasks(policy, EchoEnv(), tasks[:3], attempts=4, key=3)
    assert [row.pass_rate for row in fewer] == [row.pass_rate for row in rows[:3]]
    assert not [*tmp_path.glob("tmp.*")]


def test_parts_of_a_survey_are_whole_tasks(monkeypatch):
    monkeypatch.setattr("grupo.evidence.survey.measure.ROLLOUTS_AT_ONCE", 7)
    recipe = echo_recipe(grpo())
    tasks = EchoTasks().load()[:5]
    parts = [*survey_tasks(recipe.policy.build(), EchoEnv(), tasks, attempts=3)]
    assert [len(part) for part in parts] == [2, 2, 1]
    assert [row.key for part in parts for row in part] == [task.key for task in tasks]


def test_an_interrupted_survey_leaves_no_file(tmp_path):
    def parts():
        yield [row(0, 0.5)]
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        write_survey(tmp_path / "survey.parquet", parts(), {})
    assert not [*tmp_path.iterdir()]


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("rows.csv", "Allowed: a file that ends in .parquet."),
        ("old.parquet", "exists. Name a new file."),
        ("no/folder.parquet", "is in a folder that does not exist. Name a new file."),
    ],
)
def test_files_that_cannot_be_written_are_refused_before_generation(tmp_path, name, message):
    (tmp_path / "old.parquet").touch()
    with pytest.raises(ConfigError, match=message):
        check_new_file(tmp_path / name)


def row(task: int, pass_rate: float, **changes) -> TaskSurvey:
    key = InMemoryTasks(ROWS).load()[task].key if isinstance(task, int) else task
    fields = {
        "source": "sums",
        "location": "",
        "attempts": 4,
        "failed": 0,
        "reward_mean": pass_rate,
        "reward_std": math.sqrt(pass_rate * (1 - pass_rate)),
        "length_mean": 5.0,
        "length_max": 8,
        "truncated_frac": 0.0,
        "entropy": 1.0,
    }
    return TaskSurvey(key=key, pass_rate=pass_rate, **{**fields, **changes})


@pytest.fixture
def survey(tmp_path) -> str:
    rows = [row(i, rate) for i, rate in enumerate((0.0, 0.25, 0.5, 1.0))]
    write_survey(tmp_path / "survey.parquet", [rows], {})
    return str(tmp_path / "survey.parquet")


@pytest.mark.parametrize(
    ("selection", "expected"),
    [
        (Between("pass_rate", 0.2, 0.625), [1, 2]),
        (Between("pass_rate", 0.0, 0.0), [0]),
        (Highest("reward_std", 1), [2]),
        (Lowest("pass_rate", 2), [0, 1]),
        (Highest("pass_rate", 9), [0, 1, 2, 3]),
        (ThinnedAbove("pass_rate", 0.0, share=0.8), [0]),
    ],
)
def test_selected_tasks_are_in_the_order_of_the_source(survey, selection, expected):
    tasks = Selected(InMemoryTasks(ROWS), survey, selection).load()
    assert [task.prompt for task in tasks] == [ROWS[i]["prompt"] for i in expected]
    assert tasks[0].reference_answer == ROWS[expected[0]]["answer"]


def test_tasks_without_a_row_in_the_survey_are_left_out(survey):
    more = [*ROWS, {"prompt": "9 + 9 =", "answer": "18"}]
    tasks = Selected(InMemoryTasks(more), survey, Between("pass_rate", 0.0, 1.0)).load()
    assert len(tasks) == 4


def test_a_selection_is_a_source_for_another_one(survey):
    inner = Selected(InMemoryTasks(ROWS), survey, Between("pass_rate", 0.2, 1.0))
    tasks = Selected(inner, survey, Lowest("pass_rate", 2)).load()
    assert [task.prompt for task in tasks] == ["1 + 1 ="]  # the lowest two of the whole survey


@pytest.mark.parametrize(
    ("rows", "selection", "message"),
    [
        (
            [{"prompt": "other", "answer": ""}],
            Between("pass_rate", 0, 1),
            "has none of the 1 tasks of the source: it is of other tasks",
        ),
        (
            ROWS,
            Between("pass_rate", 0.6, 0.9),
            r"selects none of the 4 tasks\. Its pass_rate is between 0 and 1\.",
        ),
        (ROWS, Between("pas_rate", 0, 1), "no column of numbers of .*Did you mean 'pass_rate'"),
        (ROWS, Between("source", 0, 1), "'source' is no column of numbers"),
    ],
)
def test_selections_that_cannot_work_are_refused(survey, rows, selection, message):
    with pytest.raises(ConfigError, match=message):
        Selected(InMemoryTasks(rows), survey, selection).load()


def test_files_that_are_no_surveys_are_refused(tmp_path):
    selection = Between("pass_rate", 0, 1)
    text = tmp_path / "text.parquet"
    text.write_text("no table")
    other = tmp_path / "rows.parquet"
    parquet.write_table(parquet.read_table(_table(tmp_path)).drop(["key"]), other)
    for file, message in (
        (tmp_path / "missing.parquet", "there is no file"),
        (text, "is no Parquet file"),
        (other, "has no column 'key'"),
    ):
        with pytest.raises(ConfigError, match=message):
            Selected(InMemoryTasks(ROWS), str(file), selection).load()


def _table(folder: Path) -> Path:
    write_survey(folder / "table.parquet", [[row(0, 0.5)]], {})
    return folder / "table.parquet"


def test_a_range_with_its_ends_exchanged_is_refused():
    with pytest.raises(ConfigError, match=r"high: 0\.2\. Allowed: at least low, 0\.6"):
        Between("pass_rate", 0.6, 0.2)


def test_a_selection_is_stored_in_a_recipe():
    source = Selected(FromFunction(list), "survey.parquet", Highest("reward_std", 1))
    assert from_data(to_data(source)) == source


def test_the_table_counts_tasks_by_source():
    rows = [row("a", 0.0), row("b", 1.0), row("c", 0.5, source="words", failed=1)]
    table = survey_table(rows)
    cells = [list(column.cells) for column in table.columns]
    assert [*map(str, cells[0])] == ["sums", "words", "all"]
    assert cells[1:5] == [["2", "1", "3"], ["1", "0", "1"], ["0", "1", "1"], ["1", "0", "1"]]
    assert cells[5][-1] == "50.0 %"
    assert cells[7] == ["0", "1", "1"]
