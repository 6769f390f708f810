"""A server's guard: it ends the server, and all that the server started, when its parent ends.

It is run as a file of its own and imports nothing of ours, so that it starts soon and stays small.
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

PR_SET_CHILD_SUBREAPER = 36  # PR_SET_CHILD_SUBREAPER


def main() -> None:
    """Run a command until it ends, or the pipe from the parent does; then leave nothing behind."""
    folder, grace, *command = sys.argv[1:]
    adopt = getattr(ctypes.CDLL(None), "prctl", lambda *_: None)
    adopt(
        PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0
    )  # whoever loses its own parent, so that it can be waited for
    signal.signal(signal.SIGTERM, lambda *_: None)  # it is meant for the others of the group
    server = subprocess.Popen(command, stdin=subprocess.DEVNULL)
    threading.Thread(target=_watch_pipe, args=(server, folder, float(grace)), daemon=True).start()
    server.wait()
    os.killpg(0, signal.SIGTERM)
    threading.Thread(target=_kill_after, args=(float(grace),), daemon=True).start()
    with suppress(ChildProcessError):  # there are none left
        while True:
            os.wait()
    os.killpg(0, signal.SIGKILL)


def _watch_pipe(server: "subprocess.Popen[bytes]", folder: str, grace: float) -> None:
    """End the server when the pipe ends, however that came about."""
    if not sys.stdin.read():  # no word of farewell: who would have removed the folder is gone
        shutil.rmtree(folder, ignore_errors=True)
    server.terminate()
    _kill_after(grace)


def _kill_after(seconds: float) -> None:
    """Whoever is still here then has had the time to end in good order."""
    time.sleep(seconds)
    os.killpg(0, signal.SIGKILL)


if __name__ == "__main__":
    main()
