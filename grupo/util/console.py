"""Standard output and standard error of the command line.

Both functions spell control characters out, so that no text acts on the terminal.
"""

from threading import Thread, current_thread
from typing import Any

from rich.console import Console

from grupo.util.exit_codes import EXIT_BROKEN_PIPE
from grupo.util.terminal_text import escape_controls, printable_message


class PipeConsole(Console):
    """A console that ends the command without a message when the reader of its output has ended."""

    def on_broken_pipe(self) -> None:
        try:
            super().on_broken_pipe()  # discards what is written later
        except SystemExit:
            raise SystemExit(EXIT_BROKEN_PIPE) from None


out = PipeConsole()
err = Console(stderr=True)


def print_line(line: str) -> None:
    """Print a line without markup, highlighting or wrapping."""
    out.print(escape_controls(line), markup=False, highlight=False, soft_wrap=True)


def print_error(line: str) -> None:
    """Print an error message, with long values shortened."""
    err.print(printable_message(line), style="red", markup=False, highlight=False, soft_wrap=True)


class LinesOfThreads:
    """A text stream that passes on whole lines, so that threads do not print into one another's.

    Args:
        stream: Receives the lines, or the beginning of one when a thread flushes. All other
            attributes are its own.
    """

    def __init__(self, stream: Any) -> None:
        self.stream = stream
        self.unfinished: dict[Thread, str] = {}

    def write(self, text: str) -> int:
        begun = self.unfinished.pop(current_thread(), "")
        lines, newline, rest = (begun + text).rpartition("\n")
        if newline:
            self.stream.write(lines + newline)
        if rest:
            self.unfinished[current_thread()] = rest
        return len(text)

    def flush(self) -> None:
        self.stream.write(self.unfinished.pop(current_thread(), ""))
        self.stream.flush()

    def end_lines(self) -> None:
        """Pass on the unfinished lines of all threads, each as a line."""
        while self.unfinished:
            self.stream.write(self.unfinished.popitem()[1] + "\n")

    def __getattr__(self, name: str) -> Any:
        return getattr(self.stream, name)
