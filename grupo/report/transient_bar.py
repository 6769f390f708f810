"""A progress bar that disappears when its work ends."""

from types import TracebackType
from typing import Self

from rich.console import Console
from rich.progress import Progress, ProgressColumn


class TransientBar:
    """A progress bar of one task, shown while its `with` block runs.

    Args:
        console: A terminal; elsewhere nothing is shown.
        columns: What the bar shows, from left to right.
        total: The amount of work.
        disable: Show nothing on a terminal, either.
    """

    def __init__(
        self, console: Console, *columns: ProgressColumn, total: int, disable: bool = False
    ) -> None:
        self.progress = Progress(
            *columns,
            console=console,
            transient=True,
            disable=disable or not console.is_terminal,
        )
        self.task = self.progress.add_task("", total=total)

    def __enter__(self) -> Self:
        self.progress.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.progress.stop()
