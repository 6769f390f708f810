"""Resuming a run whose folder was damaged, edited, finished or locked."""

import os
import re
import shlex
import shutil
from pathlib import Path

import pytest

from grupo.storage.lock import Lock
from tests.helpers.fast_cases import fast_cases
from tests.helpers.run_outcomes import differences, files, flip_bit, outcome


@pytest.fixture
def finished(training_process, tmp_path) -> Path:
    run = tmp_path / "run"
    assert training_process("train", run, recipe="grpo").succeeded
    return run


@pytest.mark.slow
def test_a_run_with_only_damaged_checkpoints_is_refused_and_left_unchanged(
    killed_run, training_process
):
    for path in killed_run.glob("checkpoints/step-*/weights.safetensors"):
        flip_bit(path)
    before = files(killed_run)
    error = training_process("resume", killed_run).error
    assert error.startswith(
        f"CorruptRun: No checkpoint in {killed_run}/checkpoints can be used. Found"
    )
    for step in (2, 4):
        assert f"step-0000000{step}/weights.safetensors: its bytes are not those" in error
    assert files(killed_run) == before


@pytest.mark.slow
def test_a_run_without_its_checkpoints_is_refused_and_left_unchanged(killed_run, training_process):
    shutil.rmtree(killed_run / "checkpoints")
    before = files(killed_run)
    assert training_process("resume", killed_run).error == (
        f"CorruptRun: run: 4 steps were logged in {killed_run}, and its checkpoints are"
        " missing. Restore them, or start a new run in another folder."
    )
    assert files(killed_run) == before


@pytest.mark.slow
@pytest.mark.parametrize(
    "journal", fast_cases(1, ["metrics.jsonl", "rollouts.jsonl", "responses.jsonl"])
)
def test_a_torn_line_at_the_end_of_a_journal_is_removed(journal, killed_run, training_process):
    with (killed_run / journal).open("ab") as file:
        file.write(b'{"step": 4, "rew\0\0\0\0')
    assert training_process("resume", killed_run).succeeded
    assert differences(training_process.uninterrupted("grpo").outcome, outcome(killed_run)) == []


@pytest.mark.slow
@pytest.mark.parametrize(
    "journal", fast_cases(1, ["metrics.jsonl", "rollouts.jsonl", "responses.jsonl"])
)
@pytest.mark.parametrize("length", [0, 100])
def test_a_journal_shorter_than_in_the_checkpoint_is_refused(
    journal, length, killed_run, training_process
):
    size = (killed_run / journal).stat().st_size
    os.truncate(killed_run / journal, length)
    before = files(killed_run)
    error = training_process("resume", killed_run).error
    assert error.startswith("CorruptRun: No checkpoint")
    assert f"step-00000004: {journal}: {length} bytes are left of the {size} that were" in error
    assert f"step-00000002: {journal}: {length} bytes are left of the " in error
    assert files(killed_run) == before


@pytest.mark.slow
def test_an_edited_or_torn_recipe_is_refused(killed_run, training_process):
    path = killed_run / "recipe.json"
    message = "was edited or damaged since the run began. Restore the original."
    text = path.read_text()
    for changed in (
        text.replace('"max_steps": 5', '"max_steps": 6'),
        text[:-9],
        "{}",
        "[]",
        "",
        "\0",
    ):
        assert changed != text
        path.write_text(changed)
        assert training_process("resume", killed_run).error == f"ConfigError: run: {path} {message}"


@pytest.mark.slow
def test_checkpoints_of_another_recipe_are_refused(killed_run, training_process, tmp_path):
    assert training_process(
        "train", tmp_path / "other", recipe="other seed", kill="step/begin:1"
    ).killed
    shutil.copy(tmp_path / "other" / "recipe.json", killed_run / "recipe.json")
    before = files(killed_run)
    assert training_process("resume", killed_run).error == (
        f"ConfigError: run: the checkpoints in {killed_run} belong to another recipe."
    )
    assert files(killed_run) == before


@pytest.mark.slow
def test_a_folder_that_is_not_empty_is_refused(killed_run, training_process, tmp_path):
    before, note = files(killed_run), tmp_path / "my notes" / "mine.txt"
    note.parent.mkdir()
    note.write_text("mine")
    for run in (killed_run, note.parent, note):
        assert training_process("train", run, recipe="grpo").error == (
            f"ConfigError: run: {str(run)!r} exists. Name another folder, or continue this run with"
            f" `grupo resume {shlex.quote(str(run))}`."
        )
    assert files(killed_run) == before


def test_a_folder_without_a_run_cannot_be_resumed(training_process, tmp_path):
    (tmp_path / "file").write_text("mine")
    problems = {
        "missing": "is not a folder.",
        "file": "is not a folder.",
        ".": "holds no run: it has no recipe.json.",
    }
    for name, problem in problems.items():
        error = training_process("resume", tmp_path / name).error
        assert error.startswith(f"ConfigError: run: {str(tmp_path / name)!r} {problem} Allowed: ")
    assert not (tmp_path / "missing").exists()


@pytest.mark.slow
def test_a_finished_run_is_reported_and_stays_unchanged(finished, training_process):
    before = files(finished)
    result = training_process("resume", finished)
    assert result.succeeded
    assert result.messages == [f"{finished} is finished: nothing is left to do."]
    assert files(finished) == before
    (finished / "summary.json").unlink()
    assert training_process("resume", finished).succeeded
    assert files(finished) == before


@pytest.mark.slow
def test_a_finished_run_with_a_damaged_last_checkpoint_is_finished_again(
    finished, training_process
):
    flip_bit(finished / "checkpoints" / "step-00000005" / "weights.safetensors")
    result = training_process("resume", finished)
    assert result.messages[0].endswith("step-00000004 is used instead")
    assert differences(training_process.uninterrupted("grpo").outcome, outcome(finished)) == []


@pytest.mark.slow
def test_two_processes_cannot_train_in_one_folder(killed_run, training_process, tmp_path):
    before, fresh = files(killed_run), tmp_path / "fresh"
    fresh.mkdir()
    with Lock(killed_run / "lock"), Lock(fresh / "lock"):
        for result, run in (
            (training_process("resume", killed_run), killed_run),
            (training_process("train", fresh, recipe="grpo"), fresh),
        ):
            assert result.error == (
                f"ConfigError: {str(run)!r} is in use: process {os.getpid()} trains there. Wait"
                " until it ends, or stop it: its checkpoints are kept."
            )
    assert files(killed_run) == before
    for result, run in (
        (training_process("resume", killed_run), killed_run),
        (training_process("train", fresh, recipe="grpo"), fresh),
    ):
        assert result.succeeded
        assert differences(training_process.uninterrupted("grpo").outcome, outcome(run)) == []


@pytest.mark.slow
def test_a_journal_that_cannot_grow_ends_the_run_with_one_message_and_it_can_be_resumed(
    training_process, tmp_path
):
    run, limit = tmp_path / "run", 50_000  # two steps of rollouts fit, and every checkpoint
    result = training_process("train", run, recipe="talkative", limit=limit)
    assert result.error == (
        f"SaveFailed: Step 3 is not logged: {run / 'rollouts.jsonl'}: File too large. Earlier"
        " checkpoints are intact. Raise the limit on file sizes (ulimit -f), then resume."
    )
    assert training_process("resume", run, limit=limit).error == result.error
    assert training_process("resume", run).succeeded
    assert differences(training_process.uninterrupted("talkative").outcome, outcome(run)) == []


@pytest.mark.slow
def test_a_run_that_lost_power_before_its_first_checkpoint_starts_again(training_process, tmp_path):
    run = tmp_path / "run"
    assert training_process("train", run, recipe="grpo", kill="save/begun:1").killed
    content = bytearray((run / "metrics.jsonl").read_bytes())
    assert content.count(b"\n") == 2
    content[:512] = bytes(512)  # a hole in the first of two lines
    (run / "metrics.jsonl").write_bytes(content)
    assert training_process("resume", run).succeeded
    assert differences(training_process.uninterrupted("grpo").outcome, outcome(run)) == []


@pytest.mark.slow
def test_a_disk_error_while_resuming_names_the_file(killed_run, training_process):
    """Calls 1 and 2 lock the run, 3 removes its report of ranks, the others truncate journals.

    All calls fail from one on.
    """
    errors = {
        n: training_process("resume", killed_run, fail={"n": n, "code": 5, "sticky": True}).error
        for n in range(1, 19)
    }
    locked = f"ConfigError: {killed_run / 'lock'} cannot be locked: Input/output error."
    assert [n for n, error in errors.items() if error == locked] == [1, 2]
    message = r"SaveFailed: The run is not (resumed|started): \S*: Input/output error. Earlier ch"
    assert [n for n, error in errors.items() if re.match(message, error)] == [*range(3, 19)]
    assert training_process("resume", killed_run).succeeded
