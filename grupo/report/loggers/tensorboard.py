"""A run's metrics as events for TensorBoard."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

from grupo.recipe import Recipe
from grupo.report.loggers.base import Numbers, Sink, to_stderr
from grupo.report.optional_deps import needed


class TensorBoard(Sink):
    """Writes into a folder of events. Raises `Refused` where tensorboard is not installed."""

    tool = "TensorBoard"

    def __init__(self, folder: Path | str, say: Callable[[str], None] = to_stderr) -> None:
        super().__init__(folder, say)
        with needed("tensorboard", "tensorboard"):
            from torch.utils.tensorboard import SummaryWriter
        self.make, self.writer = SummaryWriter, None

    def open(self, recipe: Recipe, step: int) -> int:
        # what an interrupted run wrote after this step is hidden: it is done again
        self.writer: Any = self.make(str(self.folder), purge_step=step or None)
        return step

    def write(self, step: int, numbers: Numbers) -> None:
        for name, value in numbers.items():
            self.writer.add_scalar(name, value, step)
        self.writer.flush()

    def close(self) -> None:
        self.writer.close()
