"""A run resumed with a damaged checkpoint or pointer ends with the same bits."""

import os
import shutil
from pathlib import Path

import pytest

from grupo.util.run_files import JOURNAL_FILES
from tests.helpers.fast_cases import fast_cases
from tests.helpers.run_outcomes import differences, files, flip_bit, outcome


def empty(folder: Path) -> None:
    for path in folder.iterdir():
        path.unlink()


DAMAGE = {
    "a bit of the weights": lambda c: flip_bit(c / "step-00000004" / "weights.safetensors"),
    "a bit of the optimizer": lambda c: flip_bit(
        c / "step-00000004" / "optimizer.safetensors", 200
    ),
    "a bit of the data": lambda c: flip_bit(c / "step-00000004" / "data.json", 9),
    "a bit of the task history": lambda c: flip_bit(c / "step-00000004" / "history.safetensors"),
    "half of the weights": lambda c: os.truncate(c / "step-00000004" / "weights.safetensors", 999),
    "the manifest": lambda c: (c / "step-00000004" / "manifest.json").unlink(),
    "every file": lambda c: empty(c / "step-00000004"),
    "the folder": lambda c: shutil.rmtree(c / "step-00000004"),
}


@pytest.mark.slow
@pytest.mark.parametrize("damage", DAMAGE)
def test_a_run_resumed_from_the_older_checkpoint_ends_with_the_same_bits(
    damage, killed_run, training_process
):
    DAMAGE[damage](killed_run / "checkpoints")
    result = training_process("resume", killed_run)
    assert result.succeeded
    assert "step-00000004" in result.messages[0]
    assert result.messages[0].endswith("step-00000002 is used instead")
    assert differences(training_process.uninterrupted("grpo").outcome, outcome(killed_run)) == []


@pytest.mark.slow
@pytest.mark.parametrize("pointer", fast_cases(1, [None, b"", b"step-00000004 0\n", b"\0" * 79]))
def test_the_newest_intact_checkpoint_is_used_if_the_pointer_is_damaged(
    pointer, killed_run, training_process
):
    latest = killed_run / "checkpoints" / "latest"
    latest.unlink() if pointer is None else latest.write_bytes(pointer)
    result = training_process("resume", killed_run)
    assert result.messages[0].startswith("latest")
    assert result.messages[0].endswith("step-00000004 is used instead")
    assert differences(training_process.uninterrupted("grpo").outcome, outcome(killed_run)) == []


JOURNALS = tuple(JOURNAL_FILES.values())


def offset_of_step(journal: Path, step: int) -> int:
    return journal.read_bytes().index(f'{{"step": {step},'.encode()) + 20


@pytest.mark.slow
@pytest.mark.parametrize("journal", JOURNALS)
def test_a_flipped_byte_before_every_checkpoint_is_refused_and_its_line_named(
    journal, killed_run, training_process
):
    flip_bit(killed_run / journal, offset_of_step(killed_run / journal, 1))
    before = files(killed_run)
    error = training_process("resume", killed_run).error
    assert error.startswith(f"CorruptRun: No checkpoint in {killed_run}/checkpoints can be used.")
    for step in (2, 4):
        assert f"\n  step-0000000{step}: {journal}, line 1 (step 1" in error
    assert error.endswith(
        "Put back a copy of a damaged file, or start a new run in another folder."
    )
    assert files(killed_run) == before


@pytest.mark.slow
@pytest.mark.parametrize("journal", fast_cases(1, JOURNALS))
def test_a_flipped_byte_after_the_older_checkpoint_is_written_again(
    journal, killed_run, training_process
):
    flip_bit(killed_run / journal, offset_of_step(killed_run / journal, 4))
    result = training_process("resume", killed_run)
    assert result.succeeded
    assert f"step-00000004: {journal}, line " in result.messages[0]
    assert result.messages[0].endswith("; step-00000002 is used instead")
    assert differences(training_process.uninterrupted("grpo").outcome, outcome(killed_run)) == []
