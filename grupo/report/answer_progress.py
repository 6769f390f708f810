"""A progress bar of the answers of a comparison of turn strategies."""

from rich.console import Console
from rich.markup import escape
from rich.progress import BarColumn, MofNCompleteColumn, TextColumn, TimeRemainingColumn

from grupo.report.transient_bar import TransientBar


class AnswerProgress(TransientBar):
    """Shows the strategy in work, how many answers are done, and the estimated time that is left.

    Args:
        console: A terminal; elsewhere nothing is shown.
        total: Number of answers that are certainly generated; more are added when they begin.
    """

    def __init__(self, console: Console, total: int) -> None:
        self.total = total
        self.begun = 0
        columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn())
        left = (TextColumn("answers"), TimeRemainingColumn())
        super().__init__(console, *columns, *left, total=total)

    def begin(self, name: str, answers: int) -> None:
        """Show that so many answers of a strategy begin."""
        self.begun += answers
        self.total = max(self.total, self.begun)
        self.progress.update(self.task, description=escape(name), total=self.total)

    def answered(self) -> None:
        """Count an answer."""
        self.progress.advance(self.task)
