"""Converts a GGUF file in a process of its own: `python gguf_program.py FILE [without-locks]`."""

import errno
import fcntl
import sys
from pathlib import Path

from grupo.models.gguf import convert  # noqa: F401  # before the start: its import takes seconds
from grupo.models.gguf.cache import converted_folder
from grupo.util.exit_codes import CommandError


def no_lock(*_: object) -> None:
    raise OSError(errno.ENOLCK, "No locks available")


if __name__ == "__main__":
    if "without-locks" in sys.argv:
        fcntl.flock = no_lock
    print("ready", flush=True)
    sys.stdin.readline()
    try:
        print(converted_folder(Path(sys.argv[1])), flush=True)
    except CommandError as error:
        print(error, file=sys.stderr)
        sys.exit(error.exit_code)
