"""A run's metrics as events for TensorBoard."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

from grupo.recipe import Recipe
from grupo.report.loggers.base import MetricLogger, MetricValues, print_to_stderr
from grupo.report.optional_deps import optional_dependency


class TensorBoardLogger(MetricLogger):
    """Writes into a folder of events. Raises `ConfigError` where tensorboard is not installed."""

    tool = "TensorBoard"

    def __init__(
        self, folder: Path | str, print_line: Callable[[str], None] = print_to_stderr
    ) -> None:
        super().__init__(folder, print_line)
        with optional_dependency("tensorboard", "tensorboard"):
            from torch.utils.tensorboard import SummaryWriter
        self.writer_class, self.writer = SummaryWriter, None

    def open(self, recipe: Recipe, step: int) -> int:
        # what an interrupted run wrote after this step is hidden: it is done again
        self.writer: Any = self.writer_class(str(self.folder), purge_step=step or None)
        return step

    def write(self, step: int, metrics: MetricValues) -> None:
        for name, value in metrics.items():
            self.writer.add_scalar(name, value, step)
        self.writer.flush()

    def close(self) -> None:
        self.writer.close()
