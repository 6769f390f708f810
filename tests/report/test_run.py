"""Runs as objects: what `grupo.train` returns, and opened folders."""

import io

import pytest
from rich.console import Console

import grupo
from grupo.report import train as train_module
from grupo.report.notebook_display import NotebookDisplay
from grupo.report.progress_bar import ProgressDisplay
from grupo.report.run import Run
from grupo.training.callbacks import NullCallback
from grupo.util.errors import ConfigError


def test_an_opened_run_has_summary_metrics_recipe_and_rollouts(real_run, recipe):
    run = Run(real_run)
    assert run.summary["steps"] == len(run.metrics) == 3
    assert run.recipe == recipe
    assert len(run.rollouts(best=2)) == 2
    assert run.rollouts(1)[0]["step"] == 1
    assert repr(run).startswith(f"<Run {real_run}: finished, 3 steps, reward 0.")


def test_a_folder_without_a_run_is_refused(tmp_path):
    with pytest.raises(ConfigError, match="holds no run"):
        Run(tmp_path)


def test_html_of_a_run_has_scores_curve_findings_and_rollouts(real_run):
    page = Run(real_run)._repr_html_()
    assert "finished, 3 steps" in page
    assert "held-out tasks solved" in page
    assert "<polyline" in page
    assert "rollouts of step 3: highest and lowest rewards" in page


def test_html_of_an_unfinished_run(write_run):
    line = {"step": 1, "reward/mean": 0.5}
    folder = write_run(metrics=[line, {**line, "step": 2}])
    (folder / "recipe.json").write_text('{"recipe": {"max_steps": 9}}')
    assert "not finished, 2 steps" in Run(folder)._repr_html_()


def test_html_of_hostile_answers_is_escaped(write_run):
    hostile = "<script>alert(1)</script>"
    rollout = {"step": 1, "task": "k", "prompt": [{"role": "user", "content": hostile}]}
    rollout |= {"text": hostile, "reward": 1.0, "reward_terms": {}, "error": ""}
    rollout |= {"advantage": 0.0, "length": 1, "truncated": False}
    folder = write_run([rollout], [{"step": 1, "reward/mean": 1.0}])
    (folder / "recipe.json").write_text('{"recipe": {"policy": "<script>"}}')
    page = Run(folder)._repr_html_()
    assert "<script" not in page
    assert page.count("&lt;script&gt;") == 3


def test_training_returns_the_run_with_the_trained_policy(recipe, tmp_path):
    run = grupo.train(recipe.replace(max_steps=1), tmp_path / "run", display=NullCallback())
    assert run.summary["steps"] == 1
    run.export(tmp_path / "model")
    assert (tmp_path / "model" / "config.json").is_file()
    with pytest.raises(ConfigError, match=r"folder: .*model' exists\. Name another folder"):
        run.export(tmp_path / "model")
    again = grupo.resume(run.folder, display=NullCallback())
    assert again.summary == run.summary


def test_the_policy_of_an_opened_run_is_that_of_its_checkpoint(real_run):
    assert Run(real_run).policy.weights()


def test_a_callback_is_added_to_the_display(recipe, tmp_path, monkeypatch):
    console = Console(file=io.StringIO(), width=80)
    monkeypatch.setattr(train_module, "out", console)
    steps = []

    class Steps(NullCallback):
        def on_step_end(self, step, metrics):
            steps.append(step)

    grupo.train(recipe.replace(max_steps=1, eval_tasks=0), tmp_path / "run", Steps())
    assert steps == [1]
    assert "step 1/1" in console.file.getvalue()


@pytest.mark.parametrize(
    ("is_notebook", "kind"), [(True, NotebookDisplay), (False, ProgressDisplay)]
)
def test_the_display_follows_the_process(is_notebook, kind, monkeypatch):
    console = Console(file=io.StringIO(), force_jupyter=is_notebook)
    monkeypatch.setattr(train_module, "out", console)
    assert type(train_module.progress_display()) is kind
