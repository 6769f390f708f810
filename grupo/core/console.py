"""Standard output and standard error of the command line."""

from rich.console import Console

out = Console()
err = Console(stderr=True)


def print_line(line: str) -> None:
    """Print a line without markup, highlighting or wrapping."""
    out.print(line, markup=False, highlight=False, soft_wrap=True)


def print_error(line: str) -> None:
    """Print a line on standard error, without markup or wrapping."""
    err.print(line, style="red", markup=False, highlight=False, soft_wrap=True)
