"""What may have become of a run's folder, and what resuming it then does or says."""

import os
import shutil
from pathlib import Path

import pytest

from grupo.storage.lock import Lock
from tests.helpers.run_outcomes import differing, files, flip, outcome


@pytest.fixture
def finished(trainee, tmp_path) -> Path:
    run = tmp_path / "run"
    assert trainee("train", run, recipe="grpo").lived
    return run


def test_with_every_checkpoint_damaged_it_is_refused_and_nothing_is_touched(cut_short, trainee):
    for path in cut_short.glob("checkpoints/step-*/weights.safetensors"):
        flip(path)
    before = files(cut_short)
    error = trainee("resume", cut_short).standard_error
    assert error.startswith(f"Damaged: No checkpoint in {cut_short}/checkpoints can be used. Found")
    for step in (2, 4):
        assert f"step-0000000{step}/weights.safetensors: its bytes are not those" in error
    assert files(cut_short) == before


def test_with_its_checkpoints_gone_it_is_refused_and_the_journals_are_kept(cut_short, trainee):
    shutil.rmtree(cut_short / "checkpoints")
    before = files(cut_short)
    assert trainee("resume", cut_short).standard_error == (
        f"Damaged: run: 4 steps were logged in {cut_short}, and its checkpoints are gone."
        " Put them back, or start a new run in another folder."
    )
    assert files(cut_short) == before


@pytest.mark.parametrize("journal", ["metrics.jsonl", "rollouts.jsonl", "actions.jsonl"])
def test_what_a_crash_tore_off_a_journal_s_end_is_cut_away(journal, cut_short, trainee):
    with (cut_short / journal).open("ab") as file:
        file.write(b'{"step": 4, "rew\0\0\0\0')
    assert trainee("resume", cut_short).lived
    assert differing(trainee.whole("grpo").outcome_term, outcome(cut_short)) == []


@pytest.mark.parametrize("journal", ["metrics.jsonl", "rollouts.jsonl", "actions.jsonl"])
@pytest.mark.parametrize("length", [0, 100])
def test_a_journal_shorter_than_recorded_is_refused(journal, length, cut_short, trainee):
    os.truncate(cut_short / journal, length)
    error = trainee("resume", cut_short).standard_error
    assert error.startswith(f"Refused: {cut_short / journal} is {length} bytes long and cannot be")


def test_a_recipe_that_was_edited_or_torn_is_refused(cut_short, trainee):
    path, said = cut_short / "recipe.json", "was edited or damaged since the run began. Put it back"
    text = path.read_text()
    for changed in (text.replace('"steps": 5', '"steps": 6'), text[:-9], "{}", "[]", "", "\0"):
        assert changed != text
        path.write_text(changed)
        assert trainee("resume", cut_short).standard_error == f"Refused: run: {path} {said}."


def test_checkpoints_of_another_recipe_are_refused(cut_short, trainee, tmp_path):
    assert trainee("train", tmp_path / "other", recipe="other seed", kill="step/begin:1").killed
    shutil.copy(tmp_path / "other" / "recipe.json", cut_short / "recipe.json")
    before = files(cut_short)
    assert trainee("resume", cut_short).standard_error == (
        f"Refused: run: the checkpoints in {cut_short} belong to another recipe."
    )
    assert files(cut_short) == before


def test_a_folder_that_holds_anything_is_not_trained_in(cut_short, trainee, tmp_path):
    before, note = files(cut_short), tmp_path / "notes" / "mine.txt"
    note.parent.mkdir()
    note.write_text("mine")
    for run in (cut_short, note.parent, note):
        assert trainee("train", run, recipe="grpo").standard_error == (
            f"Refused: run: {str(run)!r} exists. Name another folder, or go on with"
            f" `grupo resume {run}`."
        )
    assert files(cut_short) == before


def test_what_holds_no_run_is_not_resumed(trainee, tmp_path):
    (tmp_path / "file").write_text("mine")
    for name in ("missing", "file", "."):
        assert trainee("resume", tmp_path / name).standard_error == (
            f"Refused: run: {str(tmp_path / name)!r} holds no run: it has no recipe.json."
        )
    assert not (tmp_path / "missing").exists()


def test_a_finished_run_says_so_and_stays_as_it_is(finished, trainee):
    before = files(finished)
    answer = trainee("resume", finished)
    assert answer.lived
    assert answer.said == [f"{finished} is finished: nothing is left to do."]
    assert files(finished) == before
    (finished / "summary.json").unlink()
    assert trainee("resume", finished).lived
    assert files(finished) == before


def test_a_finished_run_with_its_last_checkpoint_damaged_is_finished_again(finished, trainee):
    flip(finished / "checkpoints" / "step-00000005" / "weights.safetensors")
    answer = trainee("resume", finished)
    assert answer.said[0].endswith("step-00000004 is used instead")
    assert differing(trainee.whole("grpo").outcome_term, outcome(finished)) == []


def test_two_cannot_train_in_one_folder(cut_short, trainee, tmp_path):
    before, fresh = files(cut_short), tmp_path / "fresh"
    fresh.mkdir()
    with Lock(cut_short / "lock"), Lock(fresh / "lock"):
        for answer, run in (
            (trainee("resume", cut_short), cut_short),
            (trainee("train", fresh, recipe="grpo"), fresh),
        ):
            assert answer.standard_error == (
                f"Refused: {str(run)!r} is in use: process {os.getpid()} trains there. Wait until"
                " it ends, or stop it: what it did is kept."
            )
    assert files(cut_short) == before
    for answer, run in (
        (trainee("resume", cut_short), cut_short),
        (trainee("train", fresh, recipe="grpo"), fresh),
    ):
        assert answer.lived
        assert differing(trainee.whole("grpo").outcome_term, outcome(run)) == []


def test_a_journal_that_cannot_grow_ends_the_run_with_one_message_and_it_goes_on_later(
    trainee, tmp_path
):
    run, limit = tmp_path / "run", 50_000  # two steps of rollouts fit, and every checkpoint
    answer = trainee("train", run, recipe="talkative", limit=limit)
    assert answer.standard_error == (
        f"SaveFailed: Step 2 is not logged: {run / 'rollouts.jsonl'}: File too large. What was"
        " saved before is as it was. Raise the limit on file sizes (ulimit -f), then resume."
    )
    assert trainee("resume", run, limit=limit).standard_error == answer.standard_error
    assert trainee("resume", run).lived
    assert differing(trainee.whole("talkative").outcome_term, outcome(run)) == []
