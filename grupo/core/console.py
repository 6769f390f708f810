"""Where the command line writes."""

from rich.console import Console

out, err = Console(), Console(stderr=True)


def print_line(line: str) -> None:
    """A line as it is: no markup, no wrapping."""
    out.print(line, markup=False, highlight=False, soft_wrap=True)


def print_error(line: str) -> None:
    """A line as it is, on standard error."""
    err.print(line, style="red", markup=False, highlight=False, soft_wrap=True)
