"""Failures of each system call of a save, one at a time: earlier checkpoints are intact."""

import errno
import os
import shutil
from itertools import count

import pytest

from grupo.storage import atomic_files, checkpoint
from grupo.storage.atomic_files import Journal
from grupo.storage.checkpoint import NoCheckpoint, SaveFailed
from tests.helpers import checkpoint_contents

ERRORS = ("ENOSPC", "EIO", "EDQUOT", "EACCES", "EINTR", "ESTALE", "EMFILE", "EROFS", "EFBIG")


class FailingDisk:
    """Fails the n-th call, and later ones if `sticky`; a write takes at most `most` bytes."""

    def __init__(self, n: int, code: int, *, sticky: bool = False, most: int = 1 << 30):
        self.left, self.code, self.sticky, self.most, self.failed = n, code, sticky, most, []

    def __call__(self, call, /, *args, **kwargs):
        self.left -= 1
        if self.left == 0 or (self.sticky and self.left < 0):
            self.failed.append(call.__name__)
            if call is os.close:
                os.close(*args)  # the file is closed even if close fails
            named = [str(a) for a in args[:1] if isinstance(a, os.PathLike)]
            raise OSError(self.code, os.strerror(self.code), *named)
        if call is os.fsync:
            return None  # these tests are about errors, not power loss
        if call is os.write:
            return os.write(args[0], args[1][: self.most])
        return call(*args, **kwargs)


@pytest.fixture
def run(tmp_path):
    """Steps 1 and 2 and an unfinished save: the next save makes every kind of call."""
    folder = tmp_path / "run"
    for step in (0, 1, 2):
        checkpoint_contents.save(folder, step)
    (folder / "tmp.0").mkdir()
    (folder / "tmp.0" / "weights.safetensors").write_bytes(b"unfinished")
    return folder


def failing_at(n: int, folder, *, code: int, **options) -> FailingDisk:
    """Save step 3 while the n-th call fails; check the message and the checkpoints."""
    disk = FailingDisk(n, code, **options)
    try:
        assert checkpoint_contents.save(folder, 3, syscall=disk).name == "step-00000003"
        failure = None
    except SaveFailed as error:
        failure = error
    assert bool(failure) == bool(disk.failed)
    if failure:
        assert failure.file.startswith(str(folder))
        assert f"{failure.file}: {os.strerror(code)}. Earlier checkpoints are intact" in str(
            failure
        )
    committed = b"step-00000003" in (folder / "latest").read_bytes()
    saved = checkpoint_contents.loaded(folder)
    assert (saved.step, saved.notes) == (3 if committed else 2, ())
    assert committed or failure
    return disk


def fail_each_call(run, tmp_path, **options) -> list[str]:
    """Fail the first, the second, ... call of a save; returns the names of the calls."""
    failed = []
    for n in count(1):
        folder = shutil.copytree(run, tmp_path / str(n))
        disk = failing_at(n, folder, **options)
        checkpoint_contents.save(folder, 4, syscall=checkpoint_contents.unsynced)
        assert checkpoint_contents.loaded(folder).step == 4
        assert not list(folder.glob("tmp.*"))
        shutil.rmtree(folder)
        if not disk.failed:
            return failed
        failed.append(disk.failed[0])
    raise AssertionError


@pytest.mark.parametrize(
    ("error", "sticky"), [*((name, False) for name in ERRORS), ("ENOSPC", True), ("EIO", True)]
)
def test_an_error_at_any_call_of_a_save_leaves_earlier_checkpoints_intact(
    error, sticky, run, tmp_path
):
    failed = fail_each_call(run, tmp_path, code=getattr(errno, error), sticky=sticky)
    kinds = ["open", "write", "fsync", "close", "mkdir", "rename", "replace", "unlink", "rmdir"]
    assert set(failed) == set(kinds)
    # 5 files, their folder, the run's folder, the pointer, the run's folder again
    assert failed.count("fsync") == 5 + 1 + 1 + 1 + 1


@pytest.mark.parametrize("error", ["ENOSPC", "EIO"])
def test_partial_writes_leave_earlier_checkpoints_intact(error, run, tmp_path):
    failed = fail_each_call(run, tmp_path, code=getattr(errno, error), most=100)
    assert failed.count("write") > 30  # of some 3,500 bytes


def test_a_failed_first_save_leaves_a_run_without_checkpoint(tmp_path):
    for n in count(1):
        disk = FailingDisk(n, errno.EIO)
        folder = tmp_path / str(n) / "checkpoints"
        try:
            checkpoint_contents.save(folder, 0, syscall=disk)
        except SaveFailed:
            try:
                assert checkpoint_contents.loaded(folder).step == 0
            except NoCheckpoint:
                assert not list(folder.glob("step-*"))
            checkpoint_contents.save(folder, 0, syscall=checkpoint_contents.unsynced)
        assert checkpoint_contents.loaded(folder).step == 0
        if not disk.failed:
            break
    assert n > 30


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
    assert checkpoint.load(folder).step == 3


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
            Journal.truncate(journal.path, len(before))
        else:
            break
    assert journal.read() == ([{"step": 0}, {"step": 1}], ())
