"""Run folders in every state, and validation of comparisons."""

import hashlib
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
from grupo.storage.lock import Lock
from grupo.util.errors import ConfigError
from grupo.util.run_files import COMPARISON_FILE


@pytest.fixture
def run(comparison, finished_comparison, tmp_path) -> RunSpec:
    """A copy of a finished run, which tests may damage."""
    shutil.copytree(finished_comparison, tmp_path, dirs_exist_ok=True)
    return run_specs(comparison, tmp_path)[0]


def test_missing_folder_is_waiting(comparison, tmp_path):
    assert status_of(run_specs(comparison, tmp_path)[0]).status == "waiting"


def test_folder_of_a_run_killed_during_creation_is_waiting(comparison, tmp_path):
    (run, *_) = run_specs(comparison, tmp_path)
    run.folder.mkdir(parents=True)
    (run.folder / "lock").touch()
    (run.folder / "tmp.123").write_text("{")
    assert status_of(run).status == "waiting"


@pytest.mark.slow
def test_run_without_summary_is_interrupted(run):
    (run.folder / "summary.json").unlink()
    assert status_of(run).status == "interrupted"


@pytest.mark.slow
def test_locked_run_is_running(run):
    (run.folder / "summary.json").unlink()
    with Lock(run.folder / "lock"):
        status = status_of(run)
    assert status.status == "running"
    assert f"process {os.getpid()} trains there" in status.reason


def test_folder_with_other_files_is_unreadable(run):
    (run.folder / "recipe.json").unlink()
    status = status_of(run)
    assert status.status == "unreadable"
    assert "holds no run: it has no recipe.json" in status.reason


def test_edited_recipe_is_unreadable(run):
    path = run.folder / "recipe.json"
    path.write_text(path.read_text().replace('"max_steps": 3', '"max_steps": 4'))
    assert "was edited or damaged" in status_of(run).reason


def test_recipe_of_another_version_is_unreadable(run):
    """The recipe has a field that this version does not have."""
    data = {"component": "grupo.recipe:EarlyStopping", "min_solve_rate": 2.0, "rewards": 3}
    text = json.dumps({"fingerprint": _fingerprint(data), "recipe": data}, indent=1)
    (run.folder / "recipe.json").write_text(text)
    status = status_of(run)
    assert status.status == "unreadable"
    assert "EarlyStopping has no field 'rewards'" in status.reason


def test_summary_without_required_fields_is_unreadable(run):
    (run.folder / "summary.json").write_text('{"method": "GRPO"}')
    assert status_of(run).status == "unreadable"
    assert "KeyError" in status_of(run).reason


def test_torn_summary_is_unreadable(run):
    (run.folder / "summary.json").write_text('{"method": "GR')
    assert status_of(run).status == "unreadable"


def test_damaged_journal_line_is_unreadable(run):
    path = run.folder / "metrics.jsonl"
    path.write_text("{\n" + path.read_text())
    assert "metrics.jsonl, line 1, cannot be read" in status_of(run).reason


def test_folder_without_permission_is_unreadable(run):
    run.folder.chmod(0o000)
    is_root = os.geteuid() == 0
    try:
        if is_root:
            os.seteuid(65534)  # another user: root may read everything
        status = status_of(run)
    finally:
        if is_root:
            os.seteuid(0)
        run.folder.chmod(0o755)
    assert status.status == "unreadable"
    assert status.reason.startswith("Permission denied: ")


@pytest.mark.slow
def test_unreadable_run_is_not_changed_and_is_in_the_report(comparison, run, tmp_path):
    (run.folder / "recipe.json").write_text("{")
    result = run_comparison(comparison, tmp_path)
    assert [status.status for status in result.run_statuses] == ["unreadable", *["finished"] * 3]
    assert (run.folder / "recipe.json").read_text() == "{"
    report = (tmp_path / "report.md").read_text()
    assert "grpo, seed 0 is not in any mean: unreadable: run:" in report


@pytest.mark.slow
def test_nan_metric_is_in_the_report(comparison, run, tmp_path):
    path = run.folder / "metrics.jsonl"
    steps = [json.loads(line) for line in path.read_text().splitlines()]
    steps[-1]["reward/mean"] = "NaN"
    path.write_text("".join(json.dumps(step) + "\n" for step in steps))
    result = run_comparison(replace(comparison, metric="reward"), tmp_path)
    assert result.run_statuses[0].nonfinite_metrics == ["reward"]
    assert "grpo, seed 0 has reward = NaN" in (tmp_path / "report.md").read_text()


def test_run_of_another_recipe_is_rejected(comparison, run, tmp_path):
    with pytest.raises(ConfigError, match="was begun with max_steps = 3, not 5"):
        run_comparison(replace(comparison, budget=Steps(5)), tmp_path)


def test_missing_or_damaged_comparison_is_rejected(comparison, tmp_path):
    with pytest.raises(ConfigError, match="holds no comparison"):
        manifest.load_comparison(tmp_path)
    manifest.save_comparison(comparison, tmp_path)
    text = (tmp_path / COMPARISON_FILE).read_text()
    (tmp_path / COMPARISON_FILE).write_text(text[:50])
    with pytest.raises(ConfigError, match="is damaged"):
        manifest.load_comparison(tmp_path)
    (tmp_path / COMPARISON_FILE).write_text(text.replace('"format": 1', '"format": 2'))
    with pytest.raises(ConfigError, match="has format 2, this version reads 1"):
        manifest.load_comparison(tmp_path)


@pytest.mark.parametrize(
    ("field", "data", "message"),
    [
        ("updates", 0.5, "updates: 0.5. Allowed: shared, per-method, SingleUpdate(), Updates"),
        ("updates", True, "updates: True. Allowed: shared"),
        ("updates", {"path": "a"}, "updates: PosixPath('a'). Allowed: shared"),
        # a function that is no rule is not called
        ("updates", {"function": "os:abort"}, "updates: posix.abort. Allowed: shared, per-method"),
        ("recipes", 3, "recipes: 3. Allowed: an object that holds a Recipe for each name."),
        ("recipes", {"a": 1}, "recipes: 'a': 1. Allowed: a Recipe."),
        ("task_sets", [], "task_sets: []. Allowed: an object that holds a TaskSet for each name."),
        ("task_sets", {"a": 1}, "task_sets: 'a': 1. Allowed: a TaskSet."),
        ("toy_models", "\ud800", "toy_models: '\\ud800'. Allowed: a tuple of toy models"),
        ("toy_models", {"tuple": ["a"]}, "toy_models: ('a',). Allowed: a tuple of toy models"),
        ("toy_models", {"function": "math:sqrt"}, "toy_models: math.sqrt. Allowed: a tuple"),
        ("controls", {"tuple": [1]}, "controls: (1,). Allowed: a tuple (…,) of which each is"),
        ("seeds", "all", "seeds: 'all'. Allowed: a tuple (…,) of which each is a whole number."),
        ("seeds", [0.5], "seeds: (0.5,). Allowed: a tuple (…,) of which each is a whole number."),
        ("baseline", 1, "baseline: 1. Allowed: a string."),
        ("baseline", "grpp", "baseline: 'grpp' is not a recipe. Did you mean 'grpo'?"),
        ("recipes", {}, "baseline: 'grpo' is not a recipe."),
        ("design", 3, "design: 3. Allowed: SequentialDesign(…) or None."),
        ("budget", [], "budget: []. Allowed: a number of one of steps, updates, tokens, seconds."),
        ("budget", {"days": 1}, "budget: {'days': 1}. Allowed: a number of one of steps, updates"),
        ("budget", {"steps": 10**10}, "Steps.count: 10000000000. Allowed: at most 1000000000."),
    ],
)
def test_field_of_another_kind_in_a_saved_comparison(comparison, tmp_path, field, data, message):
    manifest.save_comparison(comparison, tmp_path)
    path = tmp_path / COMPARISON_FILE
    path.write_text(json.dumps({**json.loads(path.read_text()), field: data}))
    with pytest.raises(ConfigError) as error:
        manifest.load_comparison(tmp_path)
    assert str(error.value).startswith(f"out: {path}: {message}")


@pytest.mark.parametrize(
    ("rule", "message"),
    [
        (os.system, "TypeError: system() takes at most 1 argument (2 given)"),
        (lambda own, baseline: 3, " returns 3 for 'grpo'. Allowed: shared, per-method"),
        (True, "updates: True. Allowed: shared, per-method"),
    ],
)
def test_rule_that_returns_no_update_plan_is_rejected(comparison, rule, message):
    with pytest.raises(ConfigError) as error:
        validate_comparison(replace(comparison, updates=rule))
    assert str(error.value).startswith("updates: ")
    assert message in str(error.value)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"recipes": {}}, "recipes: there are none"),
        ({"seeds": 0}, "seeds: 0. Allowed: 1 or more"),
        ({"seeds": (1, 1)}, "without duplicates"),
        ({"baseline": "gpro"}, "baseline: 'gpro' is not a recipe. Did you mean 'grpo'?"),
        ({"metric": "acuracy"}, "metric: 'acuracy' is not measured."),
        ({"budget": Tokens(0)}, "budget: Tokens(count=0). Allowed: above 0."),
    ],
)
def test_invalid_comparison_is_rejected(comparison, changes, message):
    with pytest.raises(ConfigError) as error:
        validate_comparison(replace(comparison, **changes))
    assert message in str(error.value)


def test_names_with_equal_folders_are_rejected(comparison, recipe):
    names = {"a(1)": recipe, "a[1]": recipe}
    with pytest.raises(ConfigError, match="have the same folder name, 'a-1'"):
        validate_comparison(replace(comparison, recipes=names))


def test_invalid_recipe_is_rejected_with_its_name(comparison, recipe):
    with pytest.raises(ConfigError, match=r"bad: learning_rate: -1\.0\. Allowed: 0 or more"):
        validate_comparison(
            replace(comparison, recipes={"grpo": recipe, "bad": recipe.replace(learning_rate=-1.0)})
        )


def test_recipes_with_different_evaluations_are_rejected(comparison, recipe):
    other = {"grpo": recipe, "other": recipe.replace(eval_tasks=5)}
    with pytest.raises(ConfigError, match="'other' has eval_tasks = 5, and 'grpo' has 4"):
        validate_comparison(replace(comparison, recipes=other))


def test_eval_metrics_need_held_out_tasks(comparison, recipe):
    none = replace(comparison, recipes={"grpo": recipe.replace(eval_tasks=0)})
    with pytest.raises(ConfigError, match="metric: 'sampled' is measured on held-out tasks"):
        validate_comparison(none)
    validate_comparison(replace(none, metric="reward"))


def test_each_task_set_has_its_folders_and_recipes(comparison, recipe):
    sets = {"few": TaskSet(recipe.tasks, 2), "many": TaskSet(recipe.tasks, 8)}
    runs = run_specs(replace(comparison, task_sets=sets, seeds=(7,)), Path("out"))
    assert [str(run.folder) for run in runs] == [
        "out/runs/few/grpo/seed-7",
        "out/runs/few/plain/seed-7",
        "out/runs/many/grpo/seed-7",
        "out/runs/many/plain/seed-7",
    ]
    assert [run.recipe.eval_tasks for run in runs] == [2, 2, 8, 8]
    assert {run.recipe.seed for run in runs} == {7}


@pytest.mark.parametrize("budget", [Steps(5), Tokens(2000), Seconds(1.5)])
def test_comparison_round_trips_through_its_folder(comparison, recipe, budget, tmp_path):
    sets = {"few": TaskSet(recipe.tasks, 2)}
    one = replace(comparison, budget=budget, task_sets=sets, seeds=(3, 4), baseline="plain")
    manifest.save_comparison(one, tmp_path)
    assert manifest.load_comparison(tmp_path) == one


def test_slugs_are_safe_folder_names():
    assert slug("gfpo(num_kept=4, size=8)") == "gfpo-num_kept=4-size=8"
    assert slug("../a b/") == "a-b"


def _fingerprint(data: object) -> str:
    text = json.dumps(data, sort_keys=True)
    return hashlib.sha256(text.encode()).hexdigest()
