"""Failures of each system call of a save, one at a time: earlier checkpoints are intact."""

import errno
import os
import shutil
from itertools import count

import pytest

from grupo.storage import atomic_files, checkpoint
from grupo.storage.checkpoint import SaveFailed
from grupo.storage.journal import Journal, JournalState
from tests.helpers import checkpoint_contents
from tests.helpers.failing_disk import (
    ERRORS,
    FailingDisk,
    fail_each_call,
    fail_each_call_of_a_first_save,
)
from tests.helpers.fast_cases import fast_cases


@pytest.fixture
def run(tmp_path):
    """Steps 1 and 2 and an unfinished save: the next save makes every kind of call."""
    folder = tmp_path / "run"
    for step in (0, 1, 2):
        checkpoint_contents.save(folder, step)
    (folder / "tmp.0").mkdir()
    (folder / "tmp.0" / "weights.safetensors").write_bytes(b"unfinished")
    return folder


@pytest.mark.parametrize(
    ("error", "sticky"),
    fast_cases(1, [*((name, False) for name in ERRORS), ("ENOSPC", True), ("EIO", True)]),
)
def test_an_error_at_any_call_of_a_save_leaves_earlier_checkpoints_intact(
    error, sticky, run, tmp_path
):
    failed = fail_each_call(run, tmp_path, code=getattr(errno, error), sticky=sticky)
    kinds = ["open", "write", "fsync", "close", "mkdir", "rename", "replace", "unlink", "rmdir"]
    assert set(failed) == set(kinds)
    # 6 files, their folder, the run's folder, the pointer, the run's folder again
    assert failed.count("fsync") == 6 + 1 + 1 + 1 + 1


@pytest.mark.slow
@pytest.mark.parametrize("error", fast_cases(1, ["ENOSPC", "EIO"]))
def test_partial_writes_leave_earlier_checkpoints_intact(error, run, tmp_path):
    failed = fail_each_call(run, tmp_path, code=getattr(errno, error), most=100)
    assert failed.count("write") > 30  # of some 3,500 bytes


@pytest.mark.slow
def test_a_failed_first_save_leaves_a_run_without_checkpoint(tmp_path):
    assert len(fail_each_call_of_a_first_save(tmp_path, code=errno.EIO)) > 30


def test_a_failed_fsync_is_not_repeated(tmp_path):
    calls = []

    def disk(call, /, *args, **kwargs):
        calls.append(call)
        if call is os.fsync:
            raise OSError(errno.EIO, "Input/output error")
        return call(*args, **kwargs)

    with pytest.raises(SaveFailed, match=r"weights.safetensors: Input/output error"):
        checkpoint_contents.save(tmp_path, 0, syscall=disk)
    assert calls.count(os.fsync) == 1


def test_a_full_disk_gives_a_message_with_advice(run):
    with pytest.raises(SaveFailed) as caught:
        checkpoint_contents.save(run, 3, syscall=FailingDisk(12, errno.ENOSPC))
    assert "Step 3 is not saved: " in str(caught.value)
    assert ": No space left on device. Earlier checkpoints are intact. Free space" in str(
        caught.value
    )


def test_an_error_after_the_commit_reports_that_the_step_is_saved(run, tmp_path):
    folder = shutil.copytree(run, tmp_path / "copy")

    def disk(call, /, *args, **kwargs):
        if call is os.rename and args[0].name.startswith("step-"):
            raise OSError(errno.EACCES, "Permission denied", str(args[0]))
        return call(*args, **kwargs)

    with pytest.raises(SaveFailed, match="Step 3 is saved, but an older one could not be removed"):
        checkpoint_contents.save(folder, 3, syscall=disk)
    assert checkpoint.load_newest(folder).step == 3


@pytest.mark.parametrize("error", ["ENOSPC", "EIO"])
def test_an_error_at_any_call_of_an_atomic_write_leaves_the_old_text_or_the_new(error, tmp_path):
    path = tmp_path / "recipe.json"
    for n in count(1):
        atomic_files.write_atomically(path, "old")
        disk = FailingDisk(n, getattr(errno, error), most=2)
        try:
            atomic_files.write_atomically(path, "new text", syscall=disk)
        except OSError:
            assert path.read_text() == ("new text" if n > 8 else "old")  # 8: the rename
            assert disk.failed == [
                ("open", *("write",) * 4, "fsync", "close", "replace", "open", "fsync", "close")[
                    n - 1
                ]
            ]
        if not disk.failed:
            break
    assert (path.read_text(), n) == ("new text", 12)


@pytest.mark.parametrize("most", [1 << 30, 3])
def test_a_failed_append_is_undone(most, tmp_path):
    journal = Journal(tmp_path / "metrics.jsonl")
    journal.append({"step": 0})
    before = journal.path.read_bytes()
    for n in count(1):
        disk = FailingDisk(n, errno.ENOSPC, most=most)
        failure = ""
        try:
            Journal(journal.path, disk).append({"step": 1})
        except OSError as error:
            failure = error.filename
        assert failure == (str(journal.path) if disk.failed else "")
        if disk.failed:
            assert disk.failed == ["close"] or journal.path.read_bytes() == before
            journal.truncate(JournalState(length=len(before)))
        else:
            break
    assert journal.read() == ([{"step": 0}, {"step": 1}], ())
