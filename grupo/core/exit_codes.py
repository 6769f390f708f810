"""How a command ends that could not do what it was asked: an exit code, and one message."""

import errno

from grupo.core.errors import ConfigError

EXIT_UNEXPECTED = 1  # a mistake in the program: its traceback is shown
EXIT_CONFIG_ERROR = 2  # what was given cannot be used; nothing was begun
EXIT_STOPPED = 3  # a run could not go on; what it saved is whole, and it can be resumed
EXIT_CORRUPT = 4  # what lies on disk cannot be trusted
# of a disk or its rights rather than of the program
_DISK_ERRNOS = (
    errno.ENOSPC,
    errno.EDQUOT,
    errno.EFBIG,
    errno.EROFS,
    errno.EACCES,
    errno.EPERM,
    errno.EIO,
)


def exit_code(error: Exception) -> int:
    """The exit code that an error is worth."""
    if type(error) is ConfigError:
        return EXIT_CONFIG_ERROR  # at once: what follows takes a second to import
    from grupo.envs import RewardError
    from grupo.inference.http_client import EngineError
    from grupo.storage.checkpoint import CorruptRun, SaveFailed

    stopped = dict.fromkeys((SaveFailed, RewardError, EngineError), EXIT_STOPPED)
    codes = {CorruptRun: EXIT_CORRUPT, ConfigError: EXIT_CONFIG_ERROR, **stopped}
    known = [code for kind, code in codes.items() if isinstance(error, kind)]
    disk = isinstance(error, OSError) and error.errno in _DISK_ERRNOS
    return [*known, EXIT_STOPPED if disk else EXIT_UNEXPECTED][0]
