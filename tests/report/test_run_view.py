"""A run's folder read in whatever state it is in."""

import json
from pathlib import Path

from grupo.algo.losses import Clip
from grupo.method import Method
from grupo.report.html.payload import run_payload
from grupo.report.html.run_view import RunView
from tests.helpers.written_runs import action, lines, metrics, recipe, rollout, write


def read(folder: Path) -> RunView:
    book = RunView(folder)
    book.refresh()
    return book


def append(path: Path, text: str) -> None:
    with path.open("a") as file:
        file.write(text)


def test_a_run_has_its_numbers_its_groups_and_every_action(tmp_path):
    book = read(write(tmp_path))
    data = run_payload(book)
    assert data["metrics"]["reward/mean"] == [0.0, 0.1, 0.2]
    assert data["ledger"]["time/step"] == 6.0  # three steps of two seconds
    short = {"rewards": [1.0, 0.0], "lengths": [4, 4], "failed": 0, "cut": 0}
    assert data["index"]["1"] == [{"task": "one", **short}, {"task": "two", **short}]
    (one, two) = book.groups(1)
    assert (one["task"], two["prompt"]) == ("one", "What is two?")
    assert [r["actions"][0]["parts"] for r in one["rollouts"]] == [["fo", "ur"]] * 2
    assert [r["actions"][0]["drawn"] for r in one["rollouts"]] == [0, 1]
    assert data["problems"] == []
    json.dumps(data, allow_nan=False)


def test_of_a_run_that_is_known_only_what_is_new_is_told(tmp_path):
    book = read(write(tmp_path))
    data = run_payload(book, since=2)
    assert (data["metrics"]["step"], list(data["index"])) == ([2], ["2"])


def test_what_the_method_changes_is_found_without_importing_what_the_recipe_names(tmp_path):
    write(tmp_path)
    data = recipe(method=Method(loss=Clip(0.2, 0.28)))
    data["recipe"]["env"] = {"piece": "nothing.of.that.name:World", "turns": 3}
    (tmp_path / "recipe.json").write_text(json.dumps(data))
    shown = run_payload(read(tmp_path))["recipe"]
    other = [(slot, own) for slot, usual, own in shown["method"] if own != usual]
    assert other == [("loss", "Clip(clip_low=0.2, clip_high=0.28, ratio=ratios.token)")]
    assert ("env", "EnvFactory(turns=3)") in shown["fields"]
    assert shown["model"] == "some/model"


def test_a_run_that_was_cut_off_is_read_to_its_last_whole_line(tmp_path):
    write(tmp_path, ended=False)
    append(tmp_path / "rollouts.jsonl", '{"step": 3, "ta')
    book = read(tmp_path)
    assert book.problems == ["rollouts.jsonl: its last line is torn, 15 bytes left out"]
    assert sorted(book.journal_index.groups) == [0, 1, 2]
    append(tmp_path / "rollouts.jsonl", json.dumps(rollout(3, "one", "x", 1.0))[15:] + "\n")
    book.refresh()
    assert (book.problems, sorted(book.journal_index.groups)) == ([], [0, 1, 2, 3])


def test_a_run_that_has_just_begun_has_no_steps(tmp_path):
    (tmp_path / "recipe.json").write_text(json.dumps(recipe()))
    data = run_payload(read(tmp_path))
    assert (data["metrics"], data["index"], data["problems"]) == ({}, {}, [])


def test_a_recipe_that_is_half_written_is_said_and_the_rest_is_shown(tmp_path):
    write(tmp_path)
    (tmp_path / "recipe.json").write_text('{"fingerprint": "0", "rec')
    data = run_payload(read(tmp_path))
    (problem,) = data["problems"]
    assert problem.startswith("recipe.json: cannot be read.")
    assert (data["recipe"], data["metrics"]["step"]) == ({}, [0, 1, 2])


def test_a_line_that_is_no_record_is_said_by_its_place_and_left_out(tmp_path):
    write(tmp_path)
    before = (tmp_path / "metrics.jsonl").stat().st_size
    append(tmp_path / "metrics.jsonl", "no json\n" + json.dumps(metrics(3)) + "\n")
    book = read(tmp_path)
    assert [line["step"] for line in book.metrics] == [0, 1, 2, 3]
    assert any(
        p.startswith(f"metrics.jsonl, byte {before:,}: cannot be read.") for p in book.problems
    )


def test_a_run_of_an_older_version_has_texts_without_actions(tmp_path):
    write(tmp_path)
    (tmp_path / "actions.jsonl").unlink()
    old = [{"step": 0, "task": "one", "prompt": "?", "text": "four", "reward": 1.0}]
    lines(tmp_path / "rollouts.jsonl", old)
    book = read(tmp_path)
    assert not run_payload(book)["traced"]
    assert book.groups(0)[0]["rollouts"] == [{"text": "four", "reward": 1.0, "actions": []}]


def test_a_metric_that_is_no_number_stays_what_it_is(tmp_path):
    data = run_payload(read(write(tmp_path, 2, loss="NaN")))
    assert data["metrics"]["loss"] == ["NaN", "NaN"]


def test_a_metric_that_a_step_lacks_is_null_there(tmp_path):
    write(tmp_path)
    lines(tmp_path / "metrics.jsonl", [metrics(0), metrics(1, loss=0.5)])
    assert run_payload(read(tmp_path))["metrics"]["loss"] == [None, 0.5]


def test_journals_that_a_resumed_run_cut_back_are_read_anew(tmp_path):
    book = read(write(tmp_path, ended=False))
    write(tmp_path, 2, text="five", parts=("five",), ended=False)
    book.refresh()
    assert (book.epoch, len(book.metrics)) == (1, 2)
    assert book.groups(1)[0]["rollouts"][0]["text"] == "five"


def test_journals_that_were_cut_back_and_grew_past_where_they_were_are_read_anew(tmp_path):
    book = read(write(tmp_path, ended=False))
    write(tmp_path, 9, text="another text", ended=False)
    book.refresh()
    assert (book.epoch, len(book.metrics)) == (1, 9)


def test_scores_of_a_run_under_way_are_those_of_its_newest_checkpoint(tmp_path):
    write(tmp_path, ended=False)
    folder = tmp_path / "checkpoints" / "step-00000002"
    folder.mkdir(parents=True)
    (folder / "data.json").write_text(json.dumps({"scores": {"before": {"sampled": 0.25}}}))
    (tmp_path / "checkpoints" / "latest").write_text("step-00000002 0123\n")
    assert run_payload(read(tmp_path))["held_out"] == {"before": {"sampled": 0.25}}


def test_an_action_of_a_group_goes_with_its_rollout_where_only_some_groups_are_kept(tmp_path):
    write(tmp_path, 1)
    lines(tmp_path / "actions.jsonl", [{"step": 0, "group": 0, "actions": [action(["x"])]}] * 2)
    one, two = read(tmp_path).groups(0)
    assert [len(r["actions"]) for r in one["rollouts"] + two["rollouts"]] == [1, 1, 0, 0]


def test_a_compared_run_whose_process_crashed_says_why(tmp_path):
    write(tmp_path, ended=False)
    crash = tmp_path / "crash.json"
    crash.write_text(json.dumps({"code": -9, "said": "step 2"}))
    (problem,) = read(tmp_path).problems
    assert problem == (
        "its process ended before the run did: killed by signal 9, as the system does when memory"
        " is short; its last line: step 2"
    )
    crash.write_text("{")
    assert read(tmp_path).problems[0].startswith("crash.json: cannot be read.")
    write(tmp_path)  # and then it was gone on with to its end
    assert read(tmp_path).problems == []
