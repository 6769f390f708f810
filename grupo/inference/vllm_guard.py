"""Guard process of a server: ends the server and its children when the parent process ends.

It runs as a script of its own and imports nothing of grupo, so that it starts fast and stays small.
"""

import ctypes
import os
import shutil
import signal
import subprocess
import sys
import threading
import time
from contextlib import suppress

PR_SET_PDEATHSIG = 1  # of <linux/prctl.h>
PR_SET_CHILD_SUBREAPER = 36
SHUTDOWN_MESSAGE = b"shutdown"  # any bytes before the end of the pipe mean an orderly shutdown


def main() -> None:
    """Runs a command until it exits or the parent's pipe closes, then ends the process group.

    Arguments of the command line: the folder to remove if the parent is killed, the seconds between
    SIGTERM and SIGKILL, the command.
    """
    folder, grace, *command = sys.argv[1:]
    _prctl(PR_SET_CHILD_SUBREAPER, 1)  # orphaned descendants become children of the guard
    signal.signal(signal.SIGTERM, lambda *_: None)  # the guard sends it to its own group
    server = subprocess.Popen(command, stdin=subprocess.DEVNULL, preexec_fn=_end_with_guard)
    threading.Thread(target=_watch_pipe, args=(server, folder, float(grace)), daemon=True).start()
    server.wait()
    os.killpg(0, signal.SIGTERM)
    threading.Thread(target=_kill_after, args=(float(grace),), daemon=True).start()
    with suppress(ChildProcessError):  # no children are left
        while True:
            os.wait()
    os.killpg(0, signal.SIGKILL)


def _prctl(option: int, value: int) -> None:
    """Sets an attribute of this process where the system has it."""
    getattr(ctypes.CDLL(None), "prctl", lambda *_: None)(option, value, 0, 0, 0)


def _end_with_guard() -> None:
    """Lets the server receive SIGTERM when the guard is killed, as by a program that cleans up."""
    _prctl(PR_SET_PDEATHSIG, signal.SIGTERM)


def _watch_pipe(server: "subprocess.Popen[bytes]", folder: str, grace: float) -> None:
    """Ends the server when the parent closes the pipe, deliberately or by dying."""
    if not sys.stdin.read():  # the parent was killed and could not remove the folder itself
        shutil.rmtree(folder, ignore_errors=True)
    server.terminate()
    _kill_after(grace)


def _kill_after(seconds: float) -> None:
    time.sleep(seconds)
    os.killpg(0, signal.SIGKILL)


if __name__ == "__main__":
    main()
