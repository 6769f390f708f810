"""The view of a run's folder: incremental, and tolerant to every state of its files."""

import json
from pathlib import Path

import pytest

from grupo.algo.losses import Clip
from grupo.method import Method
from grupo.report.html.payload import run_payload
from grupo.report.html.run_view import RunView
from tests.helpers.written_runs import (
    metrics,
    recipe_data,
    response,
    rollout,
    write_lines,
    write_run,
)


def read(folder: Path) -> RunView:
    run = RunView(folder)
    run.refresh()
    return run


def append(path: Path, text: str) -> None:
    with path.open("a") as file:
        file.write(text)


def test_payload_has_metrics_groups_and_responses(tmp_path):
    run = read(write_run(tmp_path))
    data = run_payload(run)
    assert data["metrics"]["reward/mean"] == [0.1, 0.2, 0.3]
    assert data["ledger"]["time/step"] == 6.0  # three steps of two seconds
    summary = {"rewards": [1.0, 0.0], "lengths": [4, 4], "failed": 0, "truncated": 0}
    assert data["groups_by_step"]["1"] == [{"task": "one", **summary}, {"task": "two", **summary}]
    (first, second) = run.groups(1)
    assert (first["task"], second["prompt"]) == ("one", "What is two?")
    assert [r["responses"][0]["items"] for r in first["rollouts"]] == [["fo", "ur"]] * 2
    assert [r["responses"][0]["response_id"] for r in first["rollouts"]] == [0, 1]
    assert data["problems"] == []
    json.dumps(data, allow_nan=False)


def test_payload_since_a_step_has_only_later_steps(tmp_path):
    run = read(write_run(tmp_path))
    data = run_payload(run, since=2)
    assert (data["metrics"]["step"], list(data["groups_by_step"])) == ([3], ["3"])


def test_recipe_is_rendered_without_importing_its_components(tmp_path):
    write_run(tmp_path)
    data = recipe_data(method=Method(loss=Clip(0.2, 0.28)))
    data["recipe"]["env"] = {"component": "package.does.not.exist:World", "max_turns": 3}
    (tmp_path / "recipe.json").write_text(json.dumps(data))
    payload = run_payload(read(tmp_path))["recipe"]
    changes = [(slot, own) for slot, grpo, own in payload["method"] if own != grpo]
    assert changes == [("loss", "Clip(clip_low=0.2, clip_high=0.28, ratio=ratios.token)")]
    assert ("env", "World(max_turns=3)") in payload["fields"]
    assert payload["model"] == "some/model"


def test_torn_journal_is_read_to_its_last_complete_line(tmp_path):
    write_run(tmp_path, ended=False)
    append(tmp_path / "rollouts.jsonl", '{"step": 4, "ta')
    run = read(tmp_path)
    assert run.problems == ["rollouts.jsonl: its last line is torn, 15 bytes left out"]
    assert sorted(run.journal_index.groups) == [1, 2, 3]
    append(tmp_path / "rollouts.jsonl", json.dumps(rollout(4, "one", "x", 1.0))[15:] + "\n")
    run.refresh()
    assert (run.problems, sorted(run.journal_index.groups)) == ([], [1, 2, 3, 4])


def test_run_without_journals_has_no_steps(tmp_path):
    (tmp_path / "recipe.json").write_text(json.dumps(recipe_data()))
    data = run_payload(read(tmp_path))
    assert (data["metrics"], data["groups_by_step"], data["problems"]) == ({}, {}, [])


def test_truncated_recipe_is_a_problem_and_the_rest_is_shown(tmp_path):
    write_run(tmp_path)
    (tmp_path / "recipe.json").write_text('{"fingerprint": "0", "rec')
    data = run_payload(read(tmp_path))
    (problem,) = data["problems"]
    assert problem.startswith("recipe.json: cannot be read.")
    assert (data["recipe"], data["metrics"]["step"]) == ({}, [1, 2, 3])


def test_malformed_line_is_a_problem_with_its_offset_and_skipped(tmp_path):
    write_run(tmp_path)
    before = (tmp_path / "metrics.jsonl").stat().st_size
    append(tmp_path / "metrics.jsonl", "no json\n" + json.dumps(metrics(4)) + "\n")
    run = read(tmp_path)
    assert [line["step"] for line in run.metrics] == [1, 2, 3, 4]
    assert any(
        p.startswith(f"metrics.jsonl, byte {before:,}: cannot be read.") for p in run.problems
    )


def test_run_without_responses_has_texts(tmp_path):
    write_run(tmp_path)
    (tmp_path / "responses.jsonl").unlink()
    old = [{"step": 0, "task": "one", "prompt": "?", "text": "four", "reward": 1.0}]
    write_lines(tmp_path / "rollouts.jsonl", old)
    run = read(tmp_path)
    assert not run_payload(run)["has_responses"]
    assert run.groups(0)[0]["rollouts"] == [{"text": "four", "reward": 1.0, "responses": []}]


def test_nan_metric_stays_a_string(tmp_path):
    data = run_payload(read(write_run(tmp_path, 2, loss="NaN")))
    assert data["metrics"]["loss"] == ["NaN", "NaN"]


def test_missing_metric_is_null(tmp_path):
    write_run(tmp_path)
    write_lines(tmp_path / "metrics.jsonl", [metrics(0), metrics(1, loss=0.5)])
    assert run_payload(read(tmp_path))["metrics"]["loss"] == [None, 0.5]


def test_truncated_journals_are_read_again(tmp_path):
    run = read(write_run(tmp_path, ended=False))
    write_run(tmp_path, 2, text="five", items=("five",), ended=False)
    run.refresh()
    assert (run.epoch, len(run.metrics)) == (1, 2)
    assert run.groups(1)[0]["rollouts"][0]["text"] == "five"


def test_journals_that_were_truncated_and_grew_again_are_read_again(tmp_path):
    run = read(write_run(tmp_path, ended=False))
    write_run(tmp_path, 9, text="another text", ended=False)
    run.refresh()
    assert (run.epoch, len(run.metrics)) == (1, 9)


def test_scores_of_a_run_in_progress_come_from_its_newest_checkpoint(tmp_path):
    write_run(tmp_path, ended=False)
    folder = tmp_path / "checkpoints" / "step-00000002"
    folder.mkdir(parents=True)
    (folder / "data.json").write_text(json.dumps({"eval_scores": {"before": {"sampled": 0.25}}}))
    (tmp_path / "checkpoints" / "latest").write_text("step-00000002 0123\n")
    assert run_payload(read(tmp_path))["held_out"] == {"before": {"sampled": 0.25}}


def test_responses_are_joined_to_rollouts_when_only_some_groups_are_logged(tmp_path):
    write_run(tmp_path, 1)
    write_lines(
        tmp_path / "responses.jsonl", [{"step": 1, "group": 0, "responses": [response(["x"])]}] * 2
    )
    first, second = read(tmp_path).groups(1)
    assert [len(r["responses"]) for r in first["rollouts"] + second["rollouts"]] == [1, 1, 0, 0]


def test_crash_of_a_compared_run_is_a_problem(tmp_path):
    write_run(tmp_path, ended=False)
    crash = tmp_path / "crash.json"
    crash.write_text(json.dumps({"code": -9, "last_line": "step 2"}))
    (problem,) = read(tmp_path).problems
    assert problem == (
        "the training process crashed: killed by signal 9, as the out-of-memory killer does; its"
        " last line: step 2"
    )
    crash.write_text("{")
    assert read(tmp_path).problems[0].startswith("crash.json: cannot be read.")
    write_run(tmp_path)  # resumed and finished
    assert read(tmp_path).problems == []


@pytest.mark.parametrize("responses", ["[}", "[NaN]", '[]],"a":[[1]', "[" * 5000 + "]" * 5000])
def test_responses_that_are_no_json_are_a_problem_and_the_other_groups_are_read(
    responses, tmp_path
):
    folder = write_run(tmp_path / "run", steps=1)
    lines = (folder / "responses.jsonl").read_text().splitlines()
    lines[0] = f'{{"step": 1, "group": 0, "responses": {responses}}}'
    (folder / "responses.jsonl").write_text("\n".join([*lines, ""]))
    view = RunView(folder)
    view.refresh()
    assert [group["task"] for group in view.groups(1)] == ["two"]
    assert any("step 1, group 0, its responses" in problem for problem in view.problems)


def test_terms_of_weight_0_are_named_for_the_page(tmp_path):
    write_run(tmp_path)
    data = recipe_data()
    term = {"component": "grupo.envs.reward_term:RewardTerm", "name": "truth", "weight": 0.0}
    data["recipe"]["env"] = {"rewards": {"tuple": [term, {**term, "name": "a", "weight": 1.0}]}}
    (tmp_path / "recipe.json").write_text(json.dumps(data))
    assert run_payload(read(tmp_path))["recipe"]["measured_terms"] == ["truth"]
