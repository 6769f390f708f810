"""The command `grupo survey`, and a run with tasks that it selects."""

from pathlib import Path

from pyarrow import parquet

from grupo.tasks import Between, DatasetTasks, Selected


def test_a_survey_of_a_recipe_has_a_row_for_each_training_task(grupo, tmp_path):
    file = tmp_path / "survey.parquet"
    code, out, _ = grupo("survey", "recipe.py", "--attempts", "3", "--out", str(file))
    assert code == 0
    assert f"The survey is in {file}" in out
    rows = parquet.read_table(file).to_pylist()
    lines = len(Path("tasks.jsonl").read_text().splitlines())
    assert len(rows) == lines - 4  # four are held out
    assert {row["attempts"] for row in rows} == {3}
    assert all(0 <= row["pass_rate"] <= 1 for row in rows)


def test_surveys_of_a_recipe_and_of_its_finished_run_differ(grupo, tmp_path):
    before, after = tmp_path / "before.parquet", tmp_path / "after.parquet"
    assert grupo("survey", "recipe.py", "--count", "3", "--out", str(before))[0] == 0
    assert grupo("survey", "run", "--count", "3", "--out", str(after))[0] == 0
    first, second = (parquet.read_table(file).to_pylist() for file in (before, after))
    assert [row["key"] for row in first] == [row["key"] for row in second]
    assert [row["entropy"] for row in first] != [row["entropy"] for row in second]


def test_a_survey_of_chosen_tasks_selects_from_them(grupo, tmp_path):
    file = tmp_path / "survey.parquet"
    options = ["--tasks", "tasks.jsonl", "--reward", "rewards.py:digits", "--attempts", "2"]
    assert grupo("survey", "recipe.py", *options, "--out", str(file))[0] == 0
    rows = parquet.read_table(file).to_pylist()
    lengths = sorted(row["length_mean"] for row in rows)
    selection = Between("length_mean", lengths[0], lengths[len(lengths) // 2])
    chosen = Selected(DatasetTasks("tasks.jsonl"), str(file), selection).load()
    expected = [r["key"] for r in rows if r["length_mean"] <= lengths[len(lengths) // 2]]
    assert {task.key for task in chosen} == set(expected)
