"""A progress bar of the answers of a comparison of turn strategies."""

from types import TracebackType
from typing import Self

from rich.console import Console
from rich.markup import escape
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn


class AnswerProgress:
    """Shows the strategy in work, how many answers are done, and the estimated time that is left.

    Args:
        console: A terminal; elsewhere nothing is shown.
        total: Number of answers that are certainly generated; more are added when they begin.
    """

    def __init__(self, console: Console, total: int) -> None:
        self.total = total
        self.begun = 0
        self.progress = Progress(
            TextColumn("{task.description}"),
            BarColumn(),
            MofNCompleteColumn(),
            TextColumn("answers"),
            TimeRemainingColumn(),
            console=console,
            transient=True,
            disable=not console.is_terminal,
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

    def begin(self, name: str, answers: int) -> None:
        """Show that so many answers of a strategy begin."""
        self.begun += answers
        self.total = max(self.total, self.begun)
        self.progress.update(self.task, description=escape(name), total=self.total)

    def answered(self) -> None:
        """Count an answer."""
        self.progress.advance(self.task)
