"""Script that runs a command in its place, which is killed when the parent process ends.

It runs as a script of its own and imports nothing of grupo. The arguments are the process id of the
parent and the command.
"""

import ctypes
import os
import signal
import sys

PR_SET_PDEATHSIG = 1  # of <linux/prctl.h>


def main() -> None:
    """Ask the kernel for the signal, and execute the command."""
    parent, *command = sys.argv[1:]
    set_signal = getattr(ctypes.CDLL(None), "prctl", None)  # only Linux has it
    if set_signal:
        set_signal(PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
    if os.getppid() == int(parent):  # it has not ended before the kernel was asked
        os.execvp(command[0], command)


if __name__ == "__main__":
    main()
