"""Pipelines on the command line: training, resuming, and every command that reads runs."""

import json
import re

import pytest

from grupo.cli.pipeline import find_pipeline
from grupo.pipeline import MetricAtLeast, WeightMerge
from grupo.pipeline.validate import check_pipeline
from grupo.util.run_files import PIPELINE_FILE
from tests.helpers.doc_snippets import fenced_blocks
from tests.helpers.paths import ROOT

SHORT = ("--max-steps", "1", "--eval-tasks", "2", "--evaluation.attempts", "1")


@pytest.fixture(scope="module")
def trained(home, tmp_path_factory):
    """The folder of a pipeline of two stages that was trained on the command line."""
    from grupo.cli.main import main

    root = tmp_path_factory.mktemp("pipelines") / "run"
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(home)
        with pytest.raises(SystemExit) as end:
            main(["train", "stages_good.toml", "--run", str(root), *SHORT, "--rl.steps", "2"])
    assert not end.value.code
    return root


@pytest.mark.slow
def test_train_prints_each_stage_and_a_table(grupo, tmp_path):
    root = tmp_path / "run"
    code, out, _ = grupo("train", "stages_good.toml", "--run", str(root), *SHORT)
    assert code == 0
    assert "Stage 1 of 2, sft, begins with the policy of its recipe.\n" in out
    assert "Stage 2 of 2, rl, begins from sft.\n" in out
    assert re.search(r"sft .* Clip .* 1 .* done", out)
    assert re.search(r"rl .* Clip .* sft .* 1 .* done", out)
    assert out.endswith(f"The pipeline is in {root}\n")
    assert (root / PIPELINE_FILE).is_file()


@pytest.mark.slow
def test_options_address_one_stage_or_all(trained):
    steps = [
        json.loads((trained / name / "recipe.json").read_text())["recipe"]["max_steps"]
        for name in ("sft", "rl")
    ]
    assert steps == [1, 2]


@pytest.mark.slow
def test_a_finished_pipeline_is_not_trained_again(grupo, trained):
    before = {path: path.stat().st_mtime_ns for path in trained.rglob("*.json*")}
    code, out, _ = grupo("resume", str(trained))
    assert code == 0
    assert "Stage" not in out
    assert {path: path.stat().st_mtime_ns for path in trained.rglob("*.json*")} == before
    arguments = ("train", "stages_good.toml", "--run", str(trained), *SHORT, "--resume-if-exists")
    assert grupo(*arguments, "--rl.steps", "2")[0] == 0
    code, _, err = grupo(*arguments)
    assert code == 2
    assert "was begun with another pipeline" in err


def test_a_pipeline_is_resumed_as_it_was_begun(grupo, trained):
    code, _, err = grupo("resume", str(trained), "--steps", "3")
    assert (code, err) == (
        2,
        "grupo: '--steps': a pipeline is resumed as it was begun. Leave it out.\n",
    )


def test_dry_run_lists_the_stages(grupo, home):
    code, out, _ = grupo("train", "stages_good.toml", "--dry-run", "--rl.steps", "7")
    assert code == 0
    assert "Stage 1 of 2, sft, begins with the policy of its recipe." in out
    assert "7 steps = 7 updates" in out
    assert out.count("time, estimated") == 2


def test_the_report_shows_the_stages_once(grupo, trained, tmp_path):
    file = tmp_path / "report.html"
    assert grupo("report", str(trained), "--out", str(file))[0] == 0
    [data] = re.findall(r'id="data">(.*?)</script>', file.read_text())
    runs = json.loads(data)["runs"]
    assert [run["name"] for run in runs] == ["sft", "rl"]
    assert [bool(run["stages"]) for run in runs] == [True, False]
    lines = runs[0]["stages"]["lines"]
    assert [(line[0], line[2], line[3]) for line in lines] == [("sft", "", "1"), ("rl", "sft", "2")]


def test_commands_of_one_run_read_the_last_stage(grupo, trained, tmp_path):
    for command in (["rollouts"], ["eval", "--attempts", "1", "--count", "1"]):
        code, _, err = grupo(command[0], str(trained), *command[1:])
        assert code == 0
        assert err == f"{trained} is a pipeline; this is its run {trained / 'rl'}\n"
    assert grupo("export", str(trained), str(tmp_path / "model"))[0] == 0
    assert (tmp_path / "model" / "config.json").is_file()


def test_a_pipeline_in_place_of_a_run_is_named_with_its_runs(grupo, trained):
    code, _, err = grupo("simulate", str(trained))
    assert code == 2
    assert f"It is a pipeline, with the runs {trained}/rl, {trained}/sft." in err


def test_doctor_and_check_read_every_stage(grupo, trained):
    code, out, _ = grupo("doctor", str(trained), "--json")
    assert (code, list(json.loads(out))) == (0, ["sft", "rl"])
    code, out, _ = grupo("check", str(trained))
    assert code == 0
    assert out.count("OK      summary.json") == 2


def test_watch_shows_the_runs_of_a_pipeline(grupo, trained):
    code, out, _ = grupo("watch", str(trained), "--text")
    assert code == 0
    assert "sft" in out
    assert "rl" in out


@pytest.mark.slow
def test_a_condition_that_does_not_hold_ends_with_exit_code_1(grupo, tmp_path):
    arguments = ("--rl.when", "MetricAtLeast('eval/sampled', 2.0)", "--run", str(tmp_path / "run"))
    code, _, err = grupo("train", "stages_good.toml", *SHORT, *arguments)
    assert code == 1
    assert err.count("\n") == 1
    assert "does not hold: eval/sampled is " in err


@pytest.mark.slow
def test_a_stage_stopped_by_an_error_says_how_to_resume(grupo, tmp_path, monkeypatch):
    root = tmp_path / "my run"
    with monkeypatch.context() as patch:
        patch.setattr("grupo.training.learner.Learner.step", lambda self: bytearray(1 << 62))
        code, _, err = grupo("train", "stages_good.toml", "--run", str(root), *SHORT)
    assert code == 3
    hint = f"`grupo resume '{root}'` continues with the stages that are not finished."
    assert err.splitlines()[0] == hint
    assert grupo("resume", str(root))[0] == 0


def test_the_file_on_the_page_is_a_pipeline(tmp_path, monkeypatch):
    recipes, stages = (
        fenced_blocks((ROOT / "docs" / page).read_text(), "toml")[0]
        for page in ("recipe_files.md", "pipelines.md")
    )
    rewards = "def correct(completions, **columns): ...\n\n\nshort = correct\n"
    (tmp_path / "rewards.py").write_text(rewards)
    (tmp_path / "recipe.toml").write_text(recipes)
    (tmp_path / "stages.toml").write_text(stages)
    monkeypatch.chdir(tmp_path)
    pipeline = find_pipeline("stages.toml")
    assert pipeline is not None
    assert pipeline.names == ["sft", "soup", "rl"]
    assert pipeline.stages[1].start == WeightMerge({"sft": 0.5, "sft@best": 0.5})
    assert pipeline.stages[2].when == MetricAtLeast("eval/sampled", 0.5)


def test_the_example_can_be_trained():
    pipeline = find_pipeline(str(ROOT / "recipes" / "pipelines" / "sums.py"))
    assert pipeline is not None
    check_pipeline(pipeline)
    assert pipeline.names == ["sft", "rl"]
