"""Folders as they may be found, each shown as what it is."""

import json
import os
import shutil
from dataclasses import replace
from pathlib import Path

import pytest

from grupo.compare import Seconds, Steps, TaskSet, Tokens, manifest, run_comparison
from grupo.compare.experiment import RunSpec, run_specs, slug
from grupo.compare.run_status import status_of
from grupo.compare.validate import validate_comparison
from grupo.core.errors import ConfigError
from grupo.storage.lock import Lock


@pytest.fixture
def cell(comparison, finished, tmp_path) -> RunSpec:
    """A finished one, to be spoilt."""
    shutil.copytree(finished / "runs", tmp_path / "runs")
    return run_specs(comparison, tmp_path)[0]


def test_a_folder_that_is_not_there_waits(comparison, tmp_path):
    assert status_of(run_specs(comparison, tmp_path)[0]).status == "waiting"


def test_a_beginning_that_was_killed_waits(comparison, tmp_path):
    (cell, *_) = run_specs(comparison, tmp_path)
    cell.folder.mkdir(parents=True)
    (cell.folder / "lock").touch()
    (cell.folder / "tmp.123").write_text("{")
    assert status_of(cell).status == "waiting"


def test_a_run_half_written_was_cut_off(cell):
    (cell.folder / "summary.json").unlink()
    assert status_of(cell).status == "cut off"


def test_a_run_that_somebody_trains_is_running(cell):
    (cell.folder / "summary.json").unlink()
    with Lock(cell.folder / "lock"):
        found = status_of(cell)
    assert found.status == "running"
    assert f"process {os.getpid()} trains there" in found.reason


def test_a_folder_of_other_things_is_no_run(cell):
    (cell.folder / "recipe.json").unlink()
    found = status_of(cell)
    assert found.status == "unreadable"
    assert "holds no run: it has no recipe.json" in found.reason


def test_a_recipe_that_was_edited_is_told(cell):
    path = cell.folder / "recipe.json"
    path.write_text(path.read_text().replace('"steps": 3', '"steps": 4'))
    assert "was edited or damaged" in status_of(cell).reason


def test_a_run_of_another_version_is_told(cell):
    """Its recipe has a field that pieces of this version lack."""
    data = {"piece": "grupo.recipe:EarlyStopping", "sampled": 2.0, "rewards": 3}
    text = json.dumps({"fingerprint": _fingerprint(data), "recipe": data})
    (cell.folder / "recipe.json").write_text(text)
    found = status_of(cell)
    assert found.status == "unreadable"
    assert "Until has no field 'rewards'" in found.reason


def test_a_run_of_an_older_version_whose_summary_says_less_is_told(cell):
    (cell.folder / "summary.json").write_text('{"method": "GRPO"}')
    assert status_of(cell).status == "unreadable"
    assert "KeyError" in status_of(cell).reason


def test_a_summary_that_is_torn_is_told(cell):
    (cell.folder / "summary.json").write_text('{"method": "GR')
    assert status_of(cell).status == "unreadable"


def test_a_journal_with_a_damaged_line_is_told(cell):
    path = cell.folder / "metrics.jsonl"
    path.write_text("{\n" + path.read_text())
    assert "metrics.jsonl, line 1, cannot be read" in status_of(cell).reason


def test_a_folder_of_another_user_is_told(cell):
    cell.folder.chmod(0o000)
    root = os.geteuid() == 0
    try:
        if root:
            os.seteuid(65534)  # nobody: root may read everything
        found = status_of(cell)
    finally:
        if root:
            os.seteuid(0)
        cell.folder.chmod(0o755)
    assert found.status == "unreadable"
    assert found.reason.startswith("Permission denied: ")


def test_what_cannot_be_read_is_left_alone_and_the_report_names_it(comparison, cell, tmp_path):
    (cell.folder / "recipe.json").write_text("{")
    result = run_comparison(comparison, tmp_path)
    assert [outcome.status for outcome in result.run_statuses] == ["unreadable", *["finished"] * 3]
    assert (cell.folder / "recipe.json").read_text() == "{"
    assert (
        "grpo, seed 0 is not in any mean: unreadable: run:" in (tmp_path / "report.md").read_text()
    )


def test_a_number_that_is_none_is_shown_as_such(comparison, cell, tmp_path):
    path = cell.folder / "metrics.jsonl"
    steps = [json.loads(line) for line in path.read_text().splitlines()]
    steps[-1]["reward/mean"] = "NaN"
    path.write_text("".join(json.dumps(step) + "\n" for step in steps))
    result = run_comparison(replace(comparison, metric="reward"), tmp_path)
    assert result.run_statuses[0].nonfinite_metrics == ["reward"]
    assert "grpo, seed 0 has reward = NaN" in (tmp_path / "report.md").read_text()


def test_a_run_of_another_recipe_is_refused(comparison, cell, tmp_path):
    with pytest.raises(ConfigError, match="was begun with steps = 3, not 5"):
        run_comparison(replace(comparison, budget=Steps(5)), tmp_path)


def test_a_comparison_that_is_damaged_or_not_there_is_refused(comparison, tmp_path):
    with pytest.raises(ConfigError, match="holds no comparison"):
        manifest.load_comparison(tmp_path)
    manifest.save_comparison(comparison, tmp_path)
    text = (tmp_path / manifest.MANIFEST_FILE).read_text()
    (tmp_path / manifest.MANIFEST_FILE).write_text(text[:50])
    with pytest.raises(ConfigError, match="is damaged"):
        manifest.load_comparison(tmp_path)
    (tmp_path / manifest.MANIFEST_FILE).write_text(text.replace('"format": 1', '"format": 2'))
    with pytest.raises(ConfigError, match="has format 2, this version reads 1"):
        manifest.load_comparison(tmp_path)


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"recipes": {}}, "recipes: none are given"),
        ({"seeds": 0}, "seeds: 0. Allowed: 1 or more"),
        ({"seeds": (1, 1)}, "no number twice"),
        ({"baseline": "gpro"}, "baseline: 'gpro' is none of the recipes. Did you mean 'grpo'?"),
        ({"metric": "acuracy"}, "metric: 'acuracy' is not measured."),
        ({"budget": Tokens(0)}, "budget: Tokens(count=0). Allowed: above 0."),
    ],
)
def test_what_cannot_be_compared_is_refused(comparison, changes, said):
    with pytest.raises(ConfigError) as refused:
        validate_comparison(replace(comparison, **changes))
    assert said in str(refused.value)


def test_names_that_would_lie_in_one_folder_are_refused(comparison, recipe):
    names = {"a(1)": recipe, "a[1]": recipe}
    with pytest.raises(ConfigError, match="would lie in one folder, 'a-1'"):
        validate_comparison(replace(comparison, recipes=names))


def test_a_recipe_that_cannot_be_is_refused_by_its_name(comparison, recipe):
    with pytest.raises(ConfigError, match=r"bad: prompts: 0\. Allowed: 1 or more"):
        validate_comparison(
            replace(comparison, recipes={"grpo": recipe, "bad": recipe.replace(prompts_per_step=0)})
        )


def test_recipes_that_are_measured_otherwise_are_refused(comparison, recipe):
    other = {"grpo": recipe, "other": recipe.replace(eval_tasks=5)}
    with pytest.raises(ConfigError, match="'other' has held_out = 5, and 'grpo' 4"):
        validate_comparison(replace(comparison, recipes=other))


def test_held_out_tasks_are_needed_for_a_metric_of_them(comparison, recipe):
    none = replace(comparison, recipes={"grpo": recipe.replace(eval_tasks=0)})
    with pytest.raises(ConfigError, match="metric: 'sampled' is measured on held-out tasks"):
        validate_comparison(none)
    validate_comparison(replace(none, metric="reward"))


def test_every_task_set_is_a_folder_and_a_recipe_of_its_own(comparison, recipe):
    sets = {"few": TaskSet(recipe.tasks, 2), "many": TaskSet(recipe.tasks, 8)}
    found = run_specs(replace(comparison, task_sets=sets, seeds=(7,)), Path("out"))
    assert [str(cell.folder) for cell in found] == [
        "out/runs/few/grpo/seed-7",
        "out/runs/few/plain/seed-7",
        "out/runs/many/grpo/seed-7",
        "out/runs/many/plain/seed-7",
    ]
    assert [cell.recipe.eval_tasks for cell in found] == [2, 2, 8, 8]
    assert {cell.recipe.seed for cell in found} == {7}


@pytest.mark.parametrize("budget", [Steps(5), Tokens(2000), Seconds(1.5)])
def test_a_comparison_comes_back_from_its_folder(comparison, recipe, budget, tmp_path):
    sets = {"few": TaskSet(recipe.tasks, 2)}
    one = replace(comparison, budget=budget, task_sets=sets, seeds=(3, 4), baseline="plain")
    manifest.save_comparison(one, tmp_path)
    assert manifest.load_comparison(tmp_path) == one


def test_folders_are_called_as_a_shell_can_say_them():
    assert slug("gfpo(num_kept=4, size=8)") == "gfpo-keep=4-size=8"
    assert slug("../a b/") == "a-b"


def _fingerprint(data: object) -> str:
    from grupo.training.run_dir import _hash

    return _hash(data)
