"""Standard output and standard error of the command line.

Both functions spell control characters out, so that no text acts on the terminal.
"""

from rich.console import Console

from grupo.core.terminal_text import escape_controls, printable_message

out = Console()
err = Console(stderr=True)


def print_line(line: str) -> None:
    """Print a line without markup, highlighting or wrapping."""
    out.print(escape_controls(line), markup=False, highlight=False, soft_wrap=True)


def print_error(line: str) -> None:
    """Print an error message, with long values shortened."""
    err.print(printable_message(line), style="red", markup=False, highlight=False, soft_wrap=True)
