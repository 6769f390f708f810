"""The process of one run of a comparison: `python -m grupo.compare.worker FOLDER`."""

import os
import signal
import sys
import threading

from grupo.util.console import out
from grupo.util.exit_codes import EXIT_STOPPED, EXIT_UNEXPECTED, error_message, exit_code


def main(folder: str) -> None:
    """Train the run in a folder; an error message is the last line of the output."""
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    threading.Thread(target=_exit_with_parent, daemon=True).start()
    from grupo.report.progress_bar import ProgressDisplay
    from grupo.training.start import resume_training

    try:
        resume_training(folder, ProgressDisplay(out))
    except Exception as error:
        if (code := exit_code(error)) == EXIT_UNEXPECTED:
            raise
        print(error_message(error), file=sys.stderr)
        sys.exit(code)


def _exit_with_parent() -> None:
    """Exit when the parent dies: it holds the other end of the standard input."""
    while os.read(sys.stdin.fileno(), 1):
        pass
    os._exit(EXIT_STOPPED)


if __name__ == "__main__":
    main(sys.argv[1])
