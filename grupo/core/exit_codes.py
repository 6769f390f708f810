"""How a command ends that could not do what it was asked: an exit code, and one message."""

import errno

from grupo.core.errors import Refused

UNEXPECTED = 1  # a mistake in the program: its traceback is shown
REFUSED = 2  # what was given cannot be used; nothing was begun
STOPPED = 3  # a run could not go on; what it saved is whole, and it can be resumed
DAMAGED = 4  # what lies on disk cannot be trusted
# of a disk or its rights rather than of the program
_DISK = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EROFS, errno.EACCES, errno.EPERM, errno.EIO)


def code_of(error: Exception) -> int:
    """The exit code that an error is worth."""
    if type(error) is Refused:
        return REFUSED  # at once: what follows takes a second to import
    from grupo.envs import RewardFailed
    from grupo.inference.http_client import EngineFailed
    from grupo.storage.checkpoint import Damaged, SaveFailed

    stopped = dict.fromkeys((SaveFailed, RewardFailed, EngineFailed), STOPPED)
    codes = {Damaged: DAMAGED, Refused: REFUSED, **stopped}
    known = [code for kind, code in codes.items() if isinstance(error, kind)]
    disk = isinstance(error, OSError) and error.errno in _DISK
    return [*known, STOPPED if disk else UNEXPECTED][0]
