"""TensorBoard logger."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

from grupo.recipe import Recipe
from grupo.report.loggers.base import MetricLogger, MetricValues, print_to_stderr
from grupo.util.optional_deps import optional_dependency


class TensorBoardLogger(MetricLogger):
    """Writes TensorBoard events.

    Args:
        folder: the folder of the events.
        print_line: prints the messages of the logger.

    Raises:
        ConfigError: tensorboard is not installed.
    """

    tool = "TensorBoard"

    def __init__(
        self, folder: Path | str, print_line: Callable[[str], None] = print_to_stderr
    ) -> None:
        super().__init__(folder, print_line)
        with optional_dependency("tensorboard", "tensorboard"):
            from torch.utils.tensorboard import SummaryWriter
        self.writer_class = SummaryWriter
        self.writer: Any = None

    def open(self, recipe: Recipe, step: int) -> int:
        first_row = step + 1 if step else 0
        # hide events after this step: the resumed run repeats these steps
        self.writer = self.writer_class(str(self.folder), purge_step=first_row or None)
        return first_row

    def write(self, row: int, step: int, metrics: MetricValues) -> None:
        for name, value in metrics.items():
            self.writer.add_scalar(name, value, step)
        self.writer.flush()

    def close(self) -> None:
        self.writer.close()
