"""A disk whose n-th call fails, and saves on it."""

import os
import shutil
from itertools import count
from pathlib import Path

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
            if call.__name__ == "close":
                call(*args)  # the file is closed even if close fails
            named = [str(a) for a in args[:1] if isinstance(a, os.PathLike)]
            raise OSError(self.code, os.strerror(self.code), *named)
        if call.__name__ == "fsync":
            return None  # these tests are about errors, not power loss
        if call.__name__ == "write":
            return call(args[0], args[1][: self.most])
        return call(*args, **kwargs)


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
    assert (saved.step, saved.skipped_checkpoints) == (3 if committed else 2, ())
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


def fail_each_call_of_a_first_save(tmp_path: Path, **options) -> list[str]:
    """Fail the first, the second, ... call of a run's first save; returns their names."""
    failed = []
    for n in count(1):
        disk = FailingDisk(n, **options)
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
            return failed
        failed.append(disk.failed[0])
    raise AssertionError
